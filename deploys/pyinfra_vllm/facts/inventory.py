"""The gangs of the inventory that a run works on, read once a run."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from pyinfra.api import Host, State

from pyinfra_vllm import gangs, inventory_words
from pyinfra_vllm.errors import UserError
from pyinfra_vllm.facts.refusal import Refusal
from pyinfra_vllm.gangs import Members
from pyinfra_vllm.suggest import did_you_mean

_KNOWN: WeakKeyDictionary[State, Members] = WeakKeyDictionary()


def members(host: Host) -> Members:
    """Of the inventory that ``host`` is in; ``--limit`` leaves nobody out."""
    state = host.state
    if state not in _KNOWN:
        _KNOWN[state] = gangs.read({one.name: one.data.dict() for one in state.inventory})
    return _KNOWN[state]


def hosts_by_address(state: State) -> dict[str, Host]:
    """Fabric address -> host of the inventory, in a gang or not: an old head may build now."""
    said = ((host.data.get("vllm_fabric_address"), host) for host in state.inventory)
    return {str(address): host for address, host in said if address}


def gang_of(host: Host) -> str:
    """Name of the gang that a host is in."""
    return gangs.gang_name(host.data.dict())


def selected_gang(host: Host) -> str:
    """The gang that ``--data gang=NAME`` names, else the only one. UserError: say which."""
    known, said = members(host), host.data.get("gang")
    if said is not None:
        return checked_gang(said)
    if len(known.names) > 1:
        names = ", ".join(known.names)
        raise UserError(f"the inventory has several gangs, {names}; say which: --data gang=NAME")
    return known.names[0]


def checked_gang(name: object) -> str:
    """A name that can be a gang's. UserError."""
    try:
        return inventory_words.gang(name)
    except ValueError as error:
        raise UserError(f"gang={name}: {error}") from None


def is_meant(host: Host) -> bool:
    """Whether a deploy that ``--data gang=NAME`` may confine is for the gang of this host.

    Refusal when the inventory has no such gang.
    """
    known, said = members(host), host.data.get("gang")
    if said is None:
        return True
    if str(said) not in known.names:
        why = did_you_mean(str(said), known.names)
        raise Refusal(f"gang={said}: the inventory has none; {why}")
    return str(said) == gang_of(host)
