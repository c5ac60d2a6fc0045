"""Fill in the templates of ``templates/``."""

from __future__ import annotations

import shlex
from functools import lru_cache
from pathlib import Path

import jinja2

from pyinfra_vllm import resources
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.suggest import did_you_mean


def render(template_name: str, **values: object) -> str:
    """The text of ``templates/<template_name>`` with ``values`` filled in.

    A value that the template asks for and nobody gave is an error, never an
    empty text. ``{{ word|shell }}`` quotes a word for a shell. UserError names
    the template, and the line where there is one.
    """
    try:
        return _environment(resources.roots("templates")).get_template(template_name).render(values)
    except jinja2.TemplateNotFound as error:
        raise UserError(_not_found(str(error.name))) from None
    except jinja2.TemplateSyntaxError as error:
        raise UserError(f"{_shown(error.name)}:{error.lineno}: {error.message}") from None
    except jinja2.TemplateError as error:
        name = _shown(template_name)
        raise UserError(f"{name}:{_line(error, template_name)}: {error.message}") from None


@lru_cache(maxsize=8)
def _environment(roots: tuple[Path, ...]) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(roots),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        # Dockerfiles, units and environment files, which aren't markup.
        autoescape=False,
    )
    environment.filters["shell"] = shlex.quote
    return environment


def _not_found(template_name: str) -> str:
    known = _environment(resources.roots("templates")).list_templates()
    return f"{_shown(template_name)}: no such template; {did_you_mean(template_name, known)}"


def _shown(template_name: str | None) -> str:
    return f"templates/{template_name}"


def _line(error: jinja2.TemplateError, template_name: str) -> int:
    """The line of the template that raised ``error``: jinja2 puts it into the traceback."""
    line, trace = 1, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.endswith(template_name):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
