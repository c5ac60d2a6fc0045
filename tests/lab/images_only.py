"""A deploy file: the part of ``serve`` that is about the image, and nothing of the rest."""

from pyinfra import host, state

from pyinfra_vllm.deploys.wanted import wanted_release
from pyinfra_vllm.facts.inventory import members
from pyinfra_vllm.operations import image

wanted = None if host.name in members(host).builders else wanted_release(state, host, None)
if wanted is not None:
    new, token = wanted.release, wanted.token
    image.built(name="built", release=new, build=wanted.build)
    image.loaded(name="loaded", release=new)
    image.offered(name="offered", release=new, token=token)
    image.present(name="present", release=new, token=token)
    image.withdrawn(name="withdrawn", release=new)
    image.pruned(name="pruned", release=new)
