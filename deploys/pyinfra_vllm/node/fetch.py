"""Script for a node: copy what a URL holds to standard output, as ``curl`` may be missing.

It is sent on standard input to ``python3 - URL`` and needs the standard library only.
"""

from __future__ import annotations

import shutil
import sys
import time
import urllib.error
import urllib.request

TRIES = 20
"""The server has been started a moment ago: it is asked again every half second."""


def main(url: str) -> int:
    """Exit code; the reason of a failure is on standard error."""
    # No proxy: the URL is that of another node.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for attempt in range(TRIES):
        try:
            with opener.open(url, timeout=60) as answer:
                shutil.copyfileobj(answer, sys.stdout.buffer, 1 << 20)
            return 0
        except urllib.error.HTTPError as error:
            print(f"{url}: HTTP {error.code}", file=sys.stderr)
            return 1
        except OSError as error:
            refused = isinstance(getattr(error, "reason", None), ConnectionRefusedError)
            if not refused or attempt == TRIES - 1:
                print(f"{url}: {error}", file=sys.stderr)
                return 1
            time.sleep(0.5)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
