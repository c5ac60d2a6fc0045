"""Commands that read the logs of a gang's nodes, on all of them at the same time."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyinfra_vllm import journal
from pyinfra_vllm.cli import _inventory
from pyinfra_vllm.cli._session import session
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.gangs import gang_name

if TYPE_CHECKING:
    from pyinfra.api import Host, State
    from pyinfra.connectors.util import CommandOutput

_SECONDS = 30


@dataclass(frozen=True)
class Ranks:
    """The nodes of a gang that answer, by rank, and the names of those that don't."""

    state: State
    gang: str
    hosts: dict[int, Host]
    silent: list[str]

    def entries(self, command: str) -> list[journal.Entry]:
        """What ``command`` prints everywhere, by time."""
        printed = self._run(command)
        return journal.interleaved(journal.entries(rank, printed[rank]) for rank in printed)

    def first_failure(self) -> list[str]:
        """The last lines of the rank that went first."""
        found = self._run(journal.evidence(self.gang))
        return journal.first_failure(found, {r: host.name for r, host in self.hosts.items()})

    def follow(self, command: str) -> None:
        """Print what ``command`` prints as it comes, with the node's name, until it is stopped."""
        import gevent
        from pyinfra.api.output import set_echo

        set_echo(lambda line=None, **_: print(line, flush=True))
        jobs = [gevent.spawn(self._ask, host, command, True) for host in self.hosts.values()]
        gevent.joinall(jobs)

    def _run(self, command: str) -> dict[int, list[str]]:
        """Lines by rank. Of a node that doesn't answer none, and the reason is shown."""
        import gevent

        jobs = {rank: gevent.spawn(self._try, host, command) for rank, host in self.hosts.items()}
        gevent.joinall(list(jobs.values()))
        found = {}
        for rank, job in jobs.items():
            lines, why = job.get()
            found[rank] = lines
            if why:
                self.silent.append(self.hosts[rank].name)
                print(f"{self.hosts[rank].name}: {why}", file=sys.stderr)
        return found

    def _try(self, host: Host, command: str) -> tuple[list[str], str]:
        """Lines, and what went wrong."""
        from paramiko import SSHException

        try:
            ok, output = self._ask(host, command, False)
        except TimeoutError:
            return [], f"no answer in {_SECONDS} s"
        except (OSError, EOFError, SSHException) as error:
            return [], str(error) or "the node has closed the connection"
        why = "" if ok else next(iter(output.stderr_lines[-1:]), "the command failed")
        return list(output.stdout_lines), why

    def _ask(self, host: Host, command: str, shown: bool) -> tuple[bool, CommandOutput]:
        from pyinfra.api import StringCommand

        from pyinfra_vllm.facts.reach import connector_arguments

        arguments = connector_arguments(self.state, host, host)
        arguments.update({"_timeout": None if shown else _SECONDS})
        return host.run_shell_command(StringCommand(command), print_output=shown, **arguments)


def members(
    data: _inventory.Hosts, inventory: str, gang: str, wanted: Sequence[int] | None
) -> dict[str, int]:
    """Node -> its rank, of the ranks that are wanted. UserError says which there are."""
    gangs: dict[str, dict[str, int]] = {}
    for name, values in data.items():
        if "vllm_rank" in values:
            gangs.setdefault(gang_name(values), {})[name] = values["vllm_rank"]
    if gang not in gangs:
        known = f"it has {', '.join(sorted(gangs))}" if gangs else "no host has a vllm_rank"
        raise UserError(f"inventory {inventory}: there is no gang {gang}; {known}")
    found = gangs[gang]
    for rank in wanted or ():
        if rank not in found.values():
            known = ", ".join(map(str, sorted(found.values(), key=str)))
            raise UserError(f"--rank {rank}: gang {gang} has no such rank; it has {known}")
    return {name: rank for name, rank in found.items() if not wanted or rank in wanted}


@contextmanager
def ranks(
    inventory: str, gang: str, wanted: Sequence[int] | None, sudo: str | None
) -> Iterator[Ranks]:
    """The connected nodes of a gang; UserError when the inventory lacks it or one of the ranks."""
    named = members(_inventory.hosts(inventory), inventory, gang, wanted)
    with session(inventory, list(named), sudo=sudo) as (state, _):
        reached = {named[host.name]: host for host in state.inventory if host.connected}
        silent = [name for name in named if named[name] not in reached]
        if silent:
            print(f"no answer: {', '.join(silent)}", file=sys.stderr)
        yield Ranks(state, gang, dict(sorted(reached.items())), silent)
