"""Operation: the arguments of a release are known to the image that will get them."""

from __future__ import annotations

import shlex

from pyinfra import logger
from pyinfra.api import Host, State, StringCommand, operation

from pyinfra_vllm import check, flag_cache, flag_list, image_questions
from pyinfra_vllm.changes import image_on
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.flag_list import FlagList
from pyinfra_vllm.operations.common import (
    Commands,
    called,
    change,
    explained,
    look,
    look_at_gang,
    run,
    show,
    this_node,
)
from pyinfra_vllm.release import Release
from pyinfra_vllm.starts import restart_reasons


@operation()
@explained
def checked(release: Release) -> Commands:
    """The image's own ``vllm serve`` knows every flag, choice and value, before anything stops.

    Asks the image on the head, once it is there; until then the arguments are *unchecked*.

    + release: what the gang is to serve
    """
    if this_node(release).rank != 0 or not restart_reasons(release, look_at_gang(release)):
        return
    if release.content.recipe.entrypoint != flag_list.ENTRYPOINT:
        logger.warning("arguments unchecked: only those of `vllm serve` can be checked")
        return
    if image_on(release, look(release)) is None:
        show("Arguments are unchecked until the image is there")
    yield from change(called(_ask, release))


def _ask(state: State, host: Host, release: Release) -> bool:
    image = image_on(release, look(release))
    if image is None:
        logger.warning(f"{host.print_prefix}arguments unchecked: the image is not here")
        return True
    known = _flags(host, release, image.id)
    found = list(check.flag_findings(release.content.recipe, known)) if known else []
    found = found or _refusal(host, release, image.id)
    for line in found:
        logger.error(f"{host.print_prefix}{line}")
    return not found


def _flags(host: Host, release: Release, image: str) -> FlagList | None:
    build = release.content.build
    known = flag_cache.known(build) if build else None
    if known:
        return known
    ok, output = _docker(host, image_questions.list_of_flags(image))
    try:
        text = output[-1] if output else ""
        found = flag_list.parse(text) if ok else None
    except UserError as error:
        logger.warning(f"{host.print_prefix}{error}")
        return None
    if found is None:
        logger.warning(f"{host.print_prefix}flags unchecked: the image has no list of them")
    elif build:
        flag_cache.keep(build, text)
    return found


def _refusal(host: Host, release: Release, image: str) -> list[str]:
    """What vLLM itself says when it reads the command lines; values are checked in its code."""
    argv = image_questions.parse_arguments(image)
    words = f"{shlex.join(argv)}; echo exit=$?"
    _, output = _docker(host, ["sh", "-c", words], image_questions.script(release.content))
    lines, code = output[:-1], output[-1].removeprefix("exit=") if output else ""
    for line in lines:
        if line.startswith("unchecked: "):
            logger.warning(f"{host.print_prefix}{line}")
    if code == str(image_questions.REFUSED):
        return [f"the image's vllm serve refuses the arguments: {image_questions.reason(lines)}"]
    if code != "0":
        why = image_questions.reason(lines)
        logger.warning(f"{host.print_prefix}values unchecked: the image can't be asked: {why}")
    return []


def _docker(host: Host, argv: list[str], stdin: str | None = None) -> tuple[bool, list[str]]:
    ok, output = run(host, host, StringCommand(f"{shlex.join(argv)} 2>&1"), stdin=stdin)
    return ok, output.stdout_lines
