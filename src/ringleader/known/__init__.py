"""What people know of accounts, aligned to the codes of a tensor.

``labels.read_labels`` reads known bad and good accounts, ``covariates.read_covariates`` numbers that users bring,
``holdout.draw_evenly`` draws the accounts to hold out.
"""
