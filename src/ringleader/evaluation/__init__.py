"""How good a ranking is, and the protocols by which rankings are compared.

``metrics`` has the figures, ``truth`` and ``gain`` measure a model; ``protocol``, ``paper``, ``detection``, ``real``,
``speed`` and ``answers`` are the benchmarks, whose rows ``results`` stores.
"""
