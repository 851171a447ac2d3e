"""Where work runs: what this machine, or the container on it, has to give.

``machine`` says how much memory and how many processors may be used, and reserves space on disk.
"""
