"""How long a gang doesn't serve when it is switched, beside the bare start of its engine.

    python -m tests.bench.switch LAB [stub|real] [TIMES]

Brings the lab up, unless it is up, and leaves it. Switches there and back between two releases
that differ in one variable of the environment, and prints both seconds by the head's own
history, and the aim: 1.1 times the engine's start, and 5 s.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.bench.recovery import gang_on
from tests.lab.releases.changing import events, serving, variant
from tests.lab.stub.gang import HERE, ROOT

FACTOR, SECONDS = 1.1, 5.0


def main() -> None:
    name, engine, times = (*sys.argv[1:], *("", "stub", "4")[len(sys.argv) - 1 :])
    if not name or engine not in ("stub", "real"):
        sys.exit(__doc__)
    gang = gang_on(name, engine)
    recipe = "stub-4x" if engine == "stub" else "tiny-cpu-4x"
    folder = HERE / "recipes" if engine == "stub" else ROOT / "recipes"
    with tempfile.TemporaryDirectory() as other:
        for number in range(int(times)):
            original = folder / recipe / "recipe.toml"
            gang.apply("recipe.py", variant(Path(other), recipe, original, X_BENCH=str(number)))
            serving(gang)
            last = [one for one in events(gang) if one["event"] == "serving"][-1]
            aim = FACTOR * last["engine"] + SECONDS
            print(f"without service {last['without']:5.1f} s, engine {last['engine']:5.1f} s, "
                  f"aim {aim:5.1f} s", flush=True)  # fmt: skip
    gang.deploy(recipe)


if __name__ == "__main__":
    main()
