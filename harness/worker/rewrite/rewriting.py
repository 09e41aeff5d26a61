"""Verb ``rewrite``: write some nodes of a method in other operators, and save the artifact so.

The order's ``edits`` are rules with addresses in the inlined graph of ``method``; ``fold`` prunes what is not reached.
The mark ``rewritten`` tells what was done, or why a rule has refused: then nothing is saved. Without either, it tells
which rules fit the nodes at ``addresses``. It always tells where nodes of ``operators`` stand.
"""

import json
import os
import zipfile

import torch

from gate_worker import settings, wire
from gate_worker.graph import node_facts, node_replacement
from gate_worker.requests import files
from gate_worker.requests.values import BadInputs
from gate_worker.rewrite import execution, images, layers, matrix_products, pruning, removed_operators
from gate_worker.rewrite.rules import RULES, first_line
from gate_worker.values import trees

REGISTERING = (removed_operators, images, layers, execution, matrix_products, pruning)
PROVENANCE = wire.PROVENANCE
REQUESTS = ".inputs.pt"


def rewrite(request, run_dir, log):
    order = request["rewrite"]
    artifact = request["runs"][0]["artifact"]
    name, path = artifact["model"], artifact["path"]
    log.mark("switches", settings.apply_process_wide(request))
    with log.phase(wire.LOAD, model=name):
        module = torch.jit.load(path, map_location=request["device"])
    with log.phase(wire.SAVE, model=name):
        if order["edits"] or order["fold"]:
            done = rewritten(module, order)
        else:
            done = offered(module, order)
            module = None
        if module is not None and not done["refused"]:
            patched = os.path.join(run_dir, name + ".pt")
            extra = extra_files(path)
            note = provenance(order, done, artifact, extra.get(PROVENANCE, b""))
            torch.jit.save(module, patched, _extra_files=dict(extra, **{PROVENANCE: note}))
            save_requests(artifact, os.path.join(run_dir, name + REQUESTS))
            if order["operators"]:
                done["found"] = pruning.places_of(torch.jit.load(patched), order["operators"])
        log.mark("rewritten", done)
    log.emit("ready", model=name, thread=0)


def save_requests(artifact, path):
    """Save all requests as whoever has the archive alone gives them; not where plain data cannot hold one."""
    reader = trees.TensorReader(artifact["inputs_dir"], "cpu")
    entries = reader.index(artifact["inputs_dir"])
    sets = {item["set"]: {"method": item["method"], "arguments": reader.value(item["tree"])} for item in entries}
    torch.save(sets, path)
    try:
        files.read(path, (), None, 0)
    except BadInputs:
        os.remove(path)


def extra_files(path):
    """Return the files that somebody put beside the module into its archive; a server may read them."""
    with zipfile.ZipFile(path) as archive:
        named = [(name.partition("/")[2].partition("extra/"), name) for name in archive.namelist()]
        return {name: archive.read(member) for (outside, sep, name), member in named if sep and not outside and name}


def offered(module, order):
    """Return which rules fit the nodes, and where: each is tried on a copy of the graph."""
    fits, refused = [], []
    if order["addresses"]:
        graph = node_replacement.inlined(module, order["method"])
        for address in order["addresses"]:
            try:
                site = node_replacement.site_at(graph, address)
            except node_replacement.Refused as error:
                refused.append(["", address, str(error)])
                continue
            for rule in [rule for rule in RULES.values() if rule.fits(site)]:
                why = tried(graph.copy(), rule, address)
                if why:
                    refused.append([rule.name, address, why])
                else:
                    fits.append([rule.name, address])
        blocks = {tuple(address[:-1]) for address in order["addresses"]}
        for address, site in node_replacement.sites(graph):  # of a block, because what is fused there may go on beyond
            if address[:-1] in blocks and not execution.why_no_fence(site):
                fits.append(["fence", address])
    rules = {rule.name: rule.words for rule in RULES.values()}
    return {"fits": fits, "refused": refused, "rules": rules, "found": pruning.places_of(module, order["operators"])}


def tried(graph, rule, address):
    try:
        rule.apply(node_replacement.site_at(graph, address))
    except (node_replacement.Refused, RuntimeError) as error:  # the release may lack an operator that the rule writes
        return first_line(error)
    return ""


def rewritten(module, order):
    """Rewrite the module in place; return what was done, and why not where a rule has refused."""
    done = {"nodes": [], "emptied": [], "refused": []}
    if order["fold"]:
        done["emptied"] = pruning.fold(module, order["operators"])
    if not order["edits"]:
        return done
    graph = node_replacement.inlined(module, order["method"])
    places = []  # all before the first edit: it moves what comes after it
    for name, address in order["edits"]:
        try:
            site = node_replacement.site_at(graph, address)
        except node_replacement.Refused as error:
            done["refused"].append([name, address, str(error)])
            continue
        source = node_facts.source_of(site.node.sourceRange())
        edit = {"rule": name, "address": address, "operator": site.operator, "source": source}
        places.append((site, dict(edit, schema=site.node.schema() if node_replacement.has_schema(site.node) else "")))
    for site, edit in places:
        try:
            RULES[edit["rule"]].apply(site)
        except (node_replacement.Refused, RuntimeError) as error:
            done["refused"].append([edit["rule"], edit["address"], first_line(error)])
        else:
            done["nodes"].append(edit)
    graph.lint()
    return done


def provenance(order, done, artifact, before):
    """Return the note that goes into the archive; it has no date, so the same work gives the same file.

    ``before``: the note of an archive that was rewritten already, as bytes; a file of that name that is no such note is
    kept as text.
    """
    rules = {name: RULES[name].words for name, _ in order["edits"]}
    note = {
        "made_by": "torchscript gate: rewrite",
        "torch": torch.__version__,
        "model": artifact["model"],
        "from_digest": artifact["digest"],
        "method": order["method"],
        "rules": rules,
        "nodes": done["nodes"],
        "emptied": done["emptied"],
        "before": earlier_note(before) if before else None,
    }
    return json.dumps(note, indent=1, sort_keys=True)


def earlier_note(note):
    text = note.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except ValueError:
        return text
