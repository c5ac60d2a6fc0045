#!/usr/bin/python3 -IS
"""Behaves as docker does, as far as the agent uses it; state in the folder FAKE_DOCKER.

`run` is client and engine in one process: it answers completions on FAKE_PORT
after FAKE_START seconds and exits with the number that the file `exit` holds.
"""

import contextlib
import ctypes
import http.server
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

STATE = pathlib.Path(os.environ["FAKE_DOCKER"])
CONTAINERS = STATE / "containers"


def log(*words):
    with (STATE / "log").open("a") as file:
        file.write(json.dumps(words) + "\n")


def options(argv, name):
    return [value for key, value in itertools.pairwise(argv) if key == name]


class Api(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        log("completion", body)
        answer = json.dumps({"choices": [{"text": "4"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def run(argv):
    name = options(argv, "--name")[0]
    file = CONTAINERS / name
    if file.exists():
        print(f"Conflict. The container name {name} is already in use", file=sys.stderr)
        sys.exit(125)
    labels = options(argv, "--label")
    if os.geteuid() == 0:
        mount(options(argv, "--mount"))
    file.write_text(json.dumps({"pid": os.getpid(), "labels": labels, "argv": argv}))
    print("the engine's first line", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    if (STATE / "exit_at_start").exists():
        os._exit(int((STATE / "exit_at_start").read_text()))
    time.sleep(float(os.environ.get("FAKE_START", "0.2")))
    if "--headless" not in argv:
        server = http.server.HTTPServer(("127.0.0.1", int(os.environ["FAKE_PORT"])), Api)
        threading.Thread(target=server.serve_forever, daemon=True).start()
    while not (STATE / "exit").exists():
        time.sleep(0.05)
    code = (STATE / "exit").read_text()
    (STATE / "exit").unlink()
    os._exit(int(code))


def mount(wanted):
    """Bind mounts in a namespace of its own; the file `hidden` names one that is left empty."""
    ctypes.CDLL(None).unshare(0x00020000)  # CLONE_NEWNS
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    for fields in wanted:
        bind = dict(field.partition("=")[::2] for field in fields.split(","))
        source, target = bind["source"], bind["target"]
        pathlib.Path(target).mkdir(exist_ok=True)
        hidden = (STATE / "hidden").exists() and (STATE / "hidden").read_text() == target
        subprocess.run(["mount", "--bind", source, target], check=True)
        if hidden:
            subprocess.run(["mount", "-t", "tmpfs", "none", target], check=True)
        if "readonly" in bind and not (STATE / "writable").exists():
            subprocess.run(["mount", "-o", "remount,bind,ro", target], check=True)


def ps(argv):
    key, _, value = options(argv, "--filter")[0].partition("=")
    for file in CONTAINERS.iterdir():
        if key == "label" and value not in json.loads(file.read_text())["labels"]:
            continue
        if key == "name" and value != f"^/?{file.name}$":
            continue
        print(file.name)


def end(argv, number):
    for name in argv[1:]:
        file = CONTAINERS / name
        if not file.exists():
            continue
        pid = json.loads(file.read_text())["pid"]
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def inspect(argv):
    if argv[2] != "{{.State.Pid}}":
        print("false ")
    elif (CONTAINERS / argv[3]).exists():
        print(json.loads((CONTAINERS / argv[3]).read_text())["pid"])
    else:
        print(0)


def main(argv):
    log(*argv)
    if (STATE / "down").exists():
        print("Cannot connect to the Docker daemon", file=sys.stderr)
        sys.exit(1)
    if argv[0] == "run":
        run(argv)
    elif argv[0] == "ps":
        ps(argv)
    elif argv[0] == "rm":
        end(argv, signal.SIGKILL)
        for name in argv[1:]:
            (CONTAINERS / name).unlink(missing_ok=True)
    elif argv[0] == "stop":
        end(argv, signal.SIGTERM)
    elif argv[0] == "inspect":
        inspect(argv)
    elif argv[:2] == ["image", "ls"] and (STATE / "image").exists():
        print("sha256:1111")
    elif argv[:2] == ["image", "inspect"]:
        sys.exit(1)


main(sys.argv[1:])
