"""What runs on the nodes: the main process of ``vllm-<gang>.service``.

Standard library only, Python 3.10 on. Releases are data to it: it reads
``launch.json`` and ``model.manifest``, and knows nothing of recipes.
"""
