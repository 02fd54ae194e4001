# SPDX-License-Identifier: Apache-2.0
"""Cycles of includes, between folders and between files."""
import sources


def components(graph):
    """Strongly connected components of {node: set of nodes} with more than one node (Tarjan), each sorted."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(graph.get(node, ())):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            at = stack.index(node)
            component = sorted(stack[at:])
            del stack[at:]
            if len(component) > 1:
                found.append(component)

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def complaints(files):
    names = {source.name: source for source in files}
    folders, headers, reasons = {}, {}, {}
    for source in files:
        for _, header, is_angled in source.includes:
            target = None if is_angled else sources.resolve(source, header, names)
            if target is None:
                continue
            headers.setdefault(source.name, set()).add(target)
            if names[target].folder != source.folder:
                folders.setdefault(source.folder, set()).add(names[target].folder)
                reasons.setdefault((source.folder, names[target].folder), f"{source.name} includes {target}")
    for kind, graph in (("folders", folders), ("files", headers)):
        for component in components(graph):
            why = "; ".join(text for (a, b), text in reasons.items() if kind == "folders" and a in component and b in component)
            yield f"{component[0]}: a cycle of {kind}: {' '.join(component)}{why and f' ({why})'}"
