"""How long a gang doesn't serve when it is switched, beside the bare start of its engine.

    python -m tests.bench.switch LAB [stub|real] [TIMES] [SECONDS]

Brings the lab up, unless it is up, and leaves it. Switches there and back between two releases
that differ in one variable of the environment, and prints both seconds by the head's own
history, and the aim: 1.1 times the engine's start, and 5 s. The agents wait as on real nodes;
the stub engine starts in SECONDS (20).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.lab.releases.changing import events, serving, variant
from tests.lab.stub.gang import HERE, ROOT, Gang

from pyinfra_vllm.lab import commands

FACTOR, SECONDS = 1.1, 5.0


def main() -> None:
    given = dict(enumerate(sys.argv))
    name, engine = given.get(1, ""), given.get(2, "stub")
    if not name or engine not in ("stub", "real"):
        sys.exit(__doc__)
    gang = Gang(commands.up(name), 1, start=300)
    gang.set_pace()
    recipe = "stub-4x" if engine == "stub" else "tiny-cpu-4x"
    folder = HERE / "recipes" if engine == "stub" else ROOT / "recipes"
    env = {"STUB_START": given.get(4, "20")} if engine == "stub" else {}
    gang.deploy(recipe)
    with tempfile.TemporaryDirectory() as other:
        for number in range(int(given.get(3, "4"))):
            original = folder / recipe / "recipe.toml"
            changed = variant(Path(other), recipe, original, X_BENCH=str(number), **env)
            gang.apply("recipe.py", changed)
            serving(gang)
            last = [one for one in events(gang) if one["event"] == "serving"][-1]
            aim = FACTOR * last["engine"] + SECONDS
            print(f"without service {last['without']:5.1f} s, engine {last['engine']:5.1f} s, "
                  f"aim {aim:5.1f} s", flush=True)  # fmt: skip
    gang.deploy(recipe)


if __name__ == "__main__":
    main()
