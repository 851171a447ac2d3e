"""Belief: what the model is, without saying how it is learned.

- ``config.py``     ModelConfig: every setting, and the presets paper, corrected and default
- ``problem.py``    Problem: tensor, targets and settings, checked and laid out for the kernels
- ``state.py``      State: every array a fit carries from sweep to sweep; saved, resumed, extended
- ``start.py``      where a fit starts
- ``negatives.py``  negatives of a sweep, counter-based, and the kernels' view of them
- ``priors.py``     prior variances, multiplicative gamma process, heads
- ``evidence.py``   leave-one-out evidence of reviews and entities, and what joint heads read of it
- ``objective.py``  log posterior, held-out likelihood, effective rank
- ``posterior.py``  log-odds of cells and heads, leave-one-out log-odds of cells
"""
