#!/usr/bin/env python3
"""Epsilons of Opacus' RDPAccountant on a table of settings, for tests/metrics/privacy_test.cpp.

  pip install opacus; python3 scripts/make_privacy_fixtures.py > tests/fixtures/privacy/epsilon.json
"""
import itertools
import json
import warnings

import opacus
from opacus.accountants import RDPAccountant

warnings.filterwarnings("ignore")  # the warning "optimal order is the largest" does not matter here
rows = []
for rate, noise, steps in itertools.product(
        [1e-4, 0.004, 0.0178, 0.25, 0.9, 1.0], [0.3, 0.55, 0.8, 1.0, 1.1, 2.0, 4.7, 12.0], [1, 100, 10000]):
    accountant = RDPAccountant()
    accountant.history = [(noise, rate, steps)]
    for delta in [1e-5] if steps == 100 else [1e-7, 1e-3]:
        epsilon = accountant.get_epsilon(delta=delta)
        if epsilon >= 0:  # below this value epsilon is 0
            rows.append([rate, noise, steps, delta, epsilon])
text = ",\n  ".join(json.dumps(row) for row in rows)
print('{"source": "opacus %s RDPAccountant", "columns": '
      '["sample_rate", "noise_multiplier", "steps", "delta", "epsilon"],\n "rows": [\n  %s]}' %
      (opacus.__version__, text))
