#!/bin/bash
# build_wheel.sh SOURCE TARGET
# The wheel of a source tree, with as many compile jobs as the memory that is there
# allows: BuildKit can't be capped, and this machine may be serving.
set -euo pipefail
source=$1 target=$2

available=$(($(awk '/^MemAvailable:/ {print $2}' /proc/meminfo) / 1048576))
jobs=$((available / ${JOB_GIB:=8}))
cores=$(nproc)
((jobs > cores)) && jobs=$cores
((jobs < 1)) && jobs=1
echo "build_wheel: $jobs jobs: $cores cores, $available GiB available, $JOB_GIB GiB a job"
MAX_JOBS=$jobs CMAKE_BUILD_PARALLEL_LEVEL=$jobs \
    uv build --wheel --no-build-isolation --python /opt/vllm/bin/python \
    --out-dir "$target" "$source"
