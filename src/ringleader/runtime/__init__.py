"""Where work runs: what this machine, or the container on it, has to give, and where its files are.

- ``machine``   memory and processors that may be used, space on disk
- ``executor``  where pieces of work run: threads of this process
- ``peers``     the processes that share one piece of work; ``workers``: those of a driver; ``ray``: on a Ray cluster
- ``outputs``   files that appear whole; ``temporary``: folders that do not outlive their process
- ``stores``    object stores and other places with an address
"""
