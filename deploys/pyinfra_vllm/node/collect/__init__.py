"""What runs on the node to read its state: standard library only, Python >= 3.10, sent over stdin.

Only these modules (listed in ``pyinfra_vllm.node.script``) reach the node. They read and
never change anything; what they can't read they say. They do without ``pathlib`` and
``dataclasses``, whose import takes longer than reading the state.
"""
