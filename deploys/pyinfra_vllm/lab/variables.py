"""Environment of nodes and of builds on them: proxies, pip, uv and TLS as on this machine."""

from __future__ import annotations

import configparser
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from pyinfra_vllm.lab.surroundings import CA_BUNDLE, local_cas

_PROXIES = ("http_proxy", "https_proxy", "no_proxy")
_BUNDLE_NAMES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT")
_INSTALLER_NAMES = (
    "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_DEFAULT_TIMEOUT",
    "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX", "UV_HTTP_TIMEOUT",
    "UV_NATIVE_TLS", "UV_SYSTEM_CERTS", "UV_INSECURE_HOST",
)  # fmt: skip
_PIP_OPTIONS = {
    "index-url": "PIP_INDEX_URL",
    "extra-index-url": "PIP_EXTRA_INDEX_URL",
    "trusted-host": "PIP_TRUSTED_HOST",
}


def proxies(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The proxy variables that are set here, spelled as they are here."""
    names = [*_PROXIES, *(name.upper() for name in _PROXIES)]
    return {name: environ[name] for name in names if environ.get(name)}


def installers(
    environ: Mapping[str, str] = os.environ, pip_texts: Iterable[str] | None = None
) -> dict[str, str]:
    """Variables of pip, uv and TLS for builds on a node, as far as they are set here.

    Paths of CA bundles become the bundle of the image; other values that name
    a path of this machine mean nothing there and are left out. ``pip_texts``:
    pip's configuration files, the strongest last (default: those of this machine).
    """
    found = {name: str(CA_BUNDLE) for name in _BUNDLE_NAMES if environ.get(name) or local_cas()}
    values = {**_pip_options(_pip_files() if pip_texts is None else pip_texts), **environ}
    for name in _INSTALLER_NAMES:
        words = [word for word in values.get(name, "").split() if not _is_local(word)]
        if words:
            found[name] = " ".join(words)
    return found


def _is_local(word: str) -> bool:
    return word.startswith(("/", "file:"))


def _pip_files() -> list[str]:
    """pip's configuration files of the machine and of the user, in pip's own order."""
    home = Path.home()
    paths = [
        Path("/etc/xdg/pip/pip.conf"),
        Path("/etc/pip.conf"),
        home / ".pip/pip.conf",
        home / ".config/pip/pip.conf",
        Path(os.environ.get("PIP_CONFIG_FILE", os.devnull)),
    ]
    return [path.read_text() for path in paths if path.is_file()]


def _pip_options(texts: Iterable[str]) -> dict[str, str]:
    """Where pip looks for packages, as the variables that say the same."""
    parser = configparser.RawConfigParser(strict=False)
    for text in texts:
        parser.read_string(text)
    return {
        variable: parser.get(section, option)
        for section in ("global", "install")
        for option, variable in _PIP_OPTIONS.items()
        if parser.has_option(section, option)
    }
