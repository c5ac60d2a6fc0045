#!/bin/bash
# fetch_source.sh REPOSITORY COMMIT TREE FOLDER
# Fetch exactly one commit, then compare what came: a commit's tree is its content.
set -euo pipefail
repository=$1 commit=$2 tree=$3 folder=$4

git init --quiet "$folder"
git -C "$folder" fetch --quiet --depth 1 "$repository" "$commit"
git -C "$folder" checkout --quiet --detach FETCH_HEAD
compare() {
    local what=$1 wanted=$2 found=$3
    if [[ $found != "$wanted" ]]; then
        echo "fetch_source: $repository: $what is $found, the profile says $wanted" >&2
        exit 1
    fi
}
compare commit "$commit" "$(git -C "$folder" rev-parse HEAD)"
compare tree "$tree" "$(git -C "$folder" rev-parse 'HEAD^{tree}')"
git -C "$folder" submodule --quiet update --init --recursive --depth 1
