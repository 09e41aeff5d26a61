"""``golden``: what people decide about a run, kept in git."""

import argparse


def add_golden(verb: argparse.ArgumentParser) -> None:
    """Add the actions on golden records."""
    actions = verb.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("status", help="list accepted records and waiting proposals")
    propose = actions.add_parser("propose", help="propose the golden outputs of a run as records")
    propose.add_argument("run", metavar="RUN")
    propose.add_argument("-k", dest="expression", metavar="EXPR")
    propose.add_argument("--out", metavar="DIR", help="where runs are kept (default: reports)")
    accept = actions.add_parser("accept", help="accept proposals")
    accept.add_argument("models", nargs="+", metavar="MODEL", help="names, or 'all'")
    accept.add_argument("--reason", required=True, help="why these outputs are right; kept in golden/index.json")
