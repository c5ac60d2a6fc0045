"""The JSON schema of recipe.toml, for editors: ``recipes/recipe.schema.json``.

An editor that knows TOML (taplo, Even Better TOML) reads it through the line
``#:schema ../recipe.schema.json`` at the head of a recipe.
"""

from __future__ import annotations

import json

from pyinfra_vllm.recipe import Recipe

FILE = "recipe.schema.json"


def text() -> str:
    """The file's text. It says less than the models do: what contradicts what is theirs alone."""
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **Recipe.model_json_schema(ref_template="#/definitions/{model}"),
    }
    schema["definitions"] = schema.pop("$defs")
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
