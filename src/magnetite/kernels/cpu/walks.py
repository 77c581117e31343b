"""Walks from single nodes of sparse graphs: powers of a transition matrix, and PageRank by forward push."""

import numpy as np

from magnetite.kernels.cpu.compile import kernel, part


@kernel(seconds=6)
def transition_rows(source, target, weight, n, start, columns, probability):
    """Row-stochastic `T` in compressed rows, from edges in any order; repeated edges have separate entries."""
    start[:] = 0
    total = np.zeros(n)
    for edge in range(source.size):
        start[source[edge] + 1] += 1
        total[source[edge]] += weight[edge]
    for v in range(n):
        start[v + 1] += start[v]
    place = start[:-1].copy()
    for edge in range(source.size):
        u = source[edge]
        columns[place[u]] = target[edge]
        probability[place[u]] = weight[edge] / total[u]
        place[u] += 1


@part
def _step(start, columns, probability, nodes, amounts, count, mass, touched):
    """One step of a walk: `mass` at the nodes reached, which are listed in `touched`; returns their number."""
    reached = 0
    for place in range(count):
        u, share = nodes[place], amounts[place]
        stays = start[u] == start[u + 1]
        for entry in range(start[u], start[u + 1] + stays):
            v = u if stays else columns[entry]
            if mass[v] == 0.0:
                touched[reached] = v
                reached += 1
            mass[v] += share if stays else share * probability[entry]
    return reached


@part
def _push(start, columns, probability, node, restart, tolerance, estimate, residue, queue, waiting, touched):
    """Forward push: `estimate ≤ Π[node, ·]`, lower by at most the total residue; returns the number of nodes touched.

    `Π[node, ·] = estimate + Σ_u residue_u Π[u, ·]` always holds. Residue moves along the edges until no node has more
    than `tolerance`. A node without out-edges keeps all that arrives.
    """
    residue[node] = 1.0
    touched[0], reached = node, 1
    queue[0], head, tail, waiting[node] = node, 0, 1, True
    while head != tail:
        u = queue[head % queue.size]
        head += 1
        waiting[u] = False
        amount = residue[u]
        residue[u] = 0.0
        if start[u] == start[u + 1]:
            estimate[u] += amount
            continue
        estimate[u] += restart * amount
        for entry in range(start[u], start[u + 1]):
            v = columns[entry]
            if estimate[v] == 0.0 and residue[v] == 0.0:
                touched[reached] = v
                reached += 1
            residue[v] += (1.0 - restart) * amount * probability[entry]
            if residue[v] > tolerance and not waiting[v]:
                waiting[v] = True
                queue[tail % queue.size] = v
                tail += 1
    return reached


@part
def _record(nodes, amounts, count, column, row_of, table, listed, held):
    """Write probabilities into a column of the table, with a row for every new node; returns the number of rows."""
    for place in range(count):
        v = nodes[place]
        if row_of[v] < 0:
            row_of[v] = held
            listed[held] = v
            table[held, :] = 0.0
            held += 1
        table[row_of[v], column] = amounts[place]
    return held


@kernel(seconds=6)
def encode_nodes(
    start, columns, probability, first, last, steps, restart, tolerance, before, after, landing, values, lost
):  # fmt: skip
    """The features of the likeliest landing nodes of the start nodes `first … last`, in one or two directions.

    `start[d]`, `columns[d]`, `probability[d]` is the transition matrix of direction `d`; feature `before[d, s]` is its
    power `s + 1`, feature `after[d]` its PageRank (none if `restart` is negative). Entries below `tolerance` are
    dropped between steps. `lost[u, f]` is the probability that was dropped.
    """
    n, width = start.shape[1] - 1, values.shape[2]
    mass, estimate, residue = np.zeros(n), np.zeros(n), np.zeros(n)
    touched, queue, waiting = np.empty(n, np.int64), np.empty(n + 1, np.int64), np.zeros(n, np.bool_)
    row_of, listed, table = np.full(n, -1), np.empty(n, np.int64), np.empty((n, width), np.float32)
    nodes, amounts = np.empty(n, np.int64), np.empty(n)
    for u in range(first, last):
        held = 0
        for d in range(start.shape[0]):
            nodes[0], amounts[0], count = u, 1.0, 1
            for power in range(steps):
                reached = _step(start[d], columns[d], probability[d], nodes, amounts, count, mass, touched)
                count, total = 0, 0.0
                for place in range(reached):
                    v = touched[place]
                    if mass[v] > tolerance:
                        nodes[count], amounts[count] = v, mass[v]
                        total += mass[v]
                        count += 1
                    mass[v] = 0.0
                held = _record(nodes, amounts, count, before[d, power], row_of, table, listed, held)
                lost[u - first, before[d, power]] = 1.0 - total
            if restart > 0:
                reached = _push(
                    start[d], columns[d], probability[d], u, restart, tolerance,
                    estimate, residue, queue, waiting, touched,
                )  # fmt: skip
                count, total = 0, 0.0
                for place in range(reached):
                    v = touched[place]
                    if estimate[v] > 0.0:
                        nodes[count], amounts[count] = v, estimate[v]
                        total += estimate[v]
                        count += 1
                    estimate[v], residue[v] = 0.0, 0.0
                held = _record(nodes, amounts, count, after[d], row_of, table, listed, held)
                lost[u - first, after[d]] = 1.0 - total
        _choose(u, held, listed, table, row_of, landing[u - first], values[u - first])


@part
def _choose(u, held, listed, table, row_of, landing, values):
    """The rows with the largest sums: the start node first, and of equal sums the lower node first."""
    order = np.argsort(listed[:held])
    score = np.empty(held)
    for place in range(held):
        row = order[place]
        total = 0.0
        for j in range(table.shape[1]):
            total += table[row, j]
        score[place] = -np.inf if listed[row] == u else -total
    best = order[np.argsort(score, kind="mergesort")]
    landing[:] = -1
    values[:, :] = 0.0
    for place in range(min(landing.size, held)):
        landing[place] = listed[best[place]]
        values[place] = table[best[place]]
    for place in range(held):
        row_of[listed[place]] = -1
