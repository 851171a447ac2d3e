"""The GPU backend. ``backend.py`` lays the work out and launches the kernels of ``source/`` on a device:

- ``source/``      CUDA C++, one file a kernel or a family of them; ``emulation.h`` runs the same text on a CPU
- ``device.py``    a GPU through CuPy: memory, compilation, launches, and what can go wrong there
- ``emulated.py``  the same on the CPU, compiled by g++: for tests on machines without a GPU
- ``arguments.py`` the structures that kernels take, as the host writes them
- ``plans.py``     which blocks there are, and how long lists are cut and added up
- ``copies.py``    the host's arrays on a device; ``host_tensor.py``: a tensor that stays on the host
- ``streaming.py`` operations on such a tensor, in ``ranges.py``'s ranges, on one device or several (``replicas.py``)
- ``pairs.py``     pair counting

Only ``kernels.protocol`` imports this package, when the backend is asked for.
"""
