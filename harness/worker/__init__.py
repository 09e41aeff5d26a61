"""What runs inside the environments under test, where it is imported as the package ``gate_worker``.

These files run inside the environments under test: standard library and torch only, Python 3.8 grammar and
semantics, started by path (``ENV_PYTHON -s -u harness/worker/bootstrap.py RUN_DIR``). Nothing is installed
there and this folder never lands on ``sys.path``, so it can shadow nothing. The controller imports exactly one
module of it, ``wire``: the names of the contract.
"""
