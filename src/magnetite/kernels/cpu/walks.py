"""Walks on graphs: powers of a transition matrix and PageRank, of all node pairs or of the likeliest ones."""

import numpy as np

from magnetite.kernels.cpu.compile import LANES, kernel, part


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
def _push(start, columns, probability, node, restart, tolerance, slot, touched, estimate, residue, queue, waiting):
    """Forward push: `estimate ≤ Π[node, ·]`, lower by at most the total residue; returns the number of nodes touched.

    `Π[node, ·] = estimate + Σ_u residue_u Π[u, ·]` always holds. Residue moves along the edges until no node has more
    than `tolerance`. A node without out-edges keeps all that arrives. Nodes are numbered as they are touched, so that
    only `slot`, the number of each node or −1, is read at random places of a large graph.
    """
    slot[node], touched[0], reached = 0, node, 1
    estimate[0], residue[0], waiting[0] = 0.0, 1.0, True
    queue[0], head, tail = 0, 0, 1
    while head != tail:
        place = queue[head]
        head = head + 1 if head + 1 < queue.size else 0
        waiting[place] = False
        amount = residue[place]
        residue[place] = 0.0
        u = touched[place]
        begin, end = start[u], start[u + 1]
        if begin == end:
            estimate[place] += amount
            continue
        estimate[place] += restart * amount
        for entry in range(begin, end):
            v = columns[entry]
            other = slot[v]
            if other < 0:
                other = reached
                slot[v], touched[other] = other, v
                estimate[other], residue[other], waiting[other] = 0.0, 0.0, False
                reached += 1
            residue[other] += (1.0 - restart) * amount * probability[entry]
            if residue[other] > tolerance and not waiting[other]:
                waiting[other] = True
                queue[tail] = other
                tail = tail + 1 if tail + 1 < queue.size else 0
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
    mass, estimate, residue, slot = np.zeros(n), np.empty(n), np.empty(n), np.full(n, -1, np.int32)
    touched, queue, waiting = np.empty(n, np.int64), np.empty(n + 1, np.int32), np.empty(n, np.bool_)
    row_of, listed, table = np.full(n, -1), np.empty(n, np.int64), np.empty((n, width), np.float32)
    nodes, amounts, score = np.empty(n, np.int64), np.empty(n), np.empty(n)
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
                    slot, touched, estimate, residue, queue, waiting,
                )  # fmt: skip
                count, total = 0, 0.0
                for place in range(reached):
                    v = touched[place]
                    slot[v] = -1
                    if estimate[place] > 0.0:
                        nodes[count], amounts[count] = v, estimate[place]
                        total += estimate[place]
                        count += 1
                held = _record(nodes, amounts, count, after[d], row_of, table, listed, held)
                lost[u - first, after[d]] = 1.0 - total
        _choose(u, held, listed, table, row_of, score, landing[u - first], values[u - first])


@part
def _choose(u, held, listed, table, row_of, score, landing, values):
    """The rows with the largest sums: the start node first, and of equal sums the lower node first."""
    for row in range(held):
        total = 0.0
        for j in range(table.shape[1]):
            total += table[row, j]
        score[row] = -np.inf if listed[row] == u else -total
        row_of[listed[row]] = -1
    landing[:] = -1
    values[:, :] = 0.0
    count = min(held, landing.size)
    rows = np.arange(count)
    if held > count:
        # Sorting all of them would take longer than the walks.
        limit, found, equal = np.partition(score[:held], count - 1)[count - 1], 0, np.empty(held, np.int64)
        ties = 0
        for row in range(held):
            if score[row] < limit:
                rows[found] = row
                found += 1
            elif score[row] == limit:
                equal[ties] = listed[row]
                ties += 1
        last = np.partition(equal[:ties], count - found - 1)[count - found - 1]
        for row in range(held):
            if score[row] == limit and listed[row] <= last:
                rows[found] = row
                found += 1
    rows = rows[np.argsort(listed[rows])]
    rows = rows[np.argsort(score[rows], kind="mergesort")]
    for place in range(count):
        landing[place] = listed[rows[place]]
        values[place] = table[rows[place]]


@part
def _invert(matrix, work):
    """The inverse of a matrix with dominant diagonal, in place, by Gauss–Jordan elimination without pivots.

    Rows that have a zero in the column of the pivot are left alone: there are many, since graphs are sparse.
    """
    n = matrix.shape[0]
    for k in range(n):
        pivot = 1.0 / matrix[k, k]
        matrix[k, k] = 1.0
        for j in range(matrix.shape[1]):
            matrix[k, j] *= pivot
            work[j] = matrix[k, j]
        for i in range(n):
            factor = matrix[i, k]
            if i != k and factor != 0.0:
                matrix[i, k] = 0.0
                for j in range(matrix.shape[1]):
                    matrix[i, j] -= factor * work[j]


@kernel(seconds=3)
def encode_pairs(edges, weights, edge_ptr, sizes, pair_ptr, first, last, origin, steps, restart, before, after, values):
    """Walk features of all node pairs of the graphs `first … last`, from their edges.

    Row `u` of `T^k` is the mean of the rows of `T^{k−1}` that belong to the successors of `u`: `m n` operations instead
    of `n³`. Features are placed as in `encode_nodes`, and pair `origin` is the first row of `values`. Rows are
    padded so that loops over them have no remainder.
    """
    for graph in range(first, last):
        n, begin, end = sizes[graph], edge_ptr[graph], edge_ptr[graph + 1]
        padded = (n + LANES - 1) // LANES * LANES
        total, power, other = np.zeros(n), np.zeros((n, padded)), np.zeros((n, padded))
        rank, work = np.zeros((n, padded)), np.empty(padded)
        for d in range(before.shape[0]):
            total[:] = 0.0
            for edge in range(begin, end):
                total[edges[d, edge]] += weights[edge]
            power[:, :], rank[:, :] = 0.0, 0.0
            for u in range(n):
                if total[u] == 0.0:
                    power[u, u] = 1.0
            for edge in range(begin, end):
                u = edges[d, edge]
                power[u, edges[1 - d, edge]] += weights[edge] / total[u]
            if restart > 0:
                for u in range(n):
                    for v in range(n):
                        if power[u, v] != 0.0:  # no negative zeros
                            rank[u, v] = (restart - 1.0) * power[u, v]
                    rank[u, u] += 1.0
                _invert(rank, work)
            for step in range(steps):
                if step:
                    power, other = other, power
                    power[:, :] = 0.0
                    for edge in range(begin, end):
                        u, v = edges[d, edge], edges[1 - d, edge]
                        share = weights[edge] / total[u]
                        for j in range(padded):
                            power[u, j] += share * other[v, j]
                    for u in range(n):
                        if total[u] == 0.0:
                            power[u, u] = 1.0
                place = before[d, step]
                for u in range(n):
                    start = pair_ptr[graph] - origin + u * n
                    for v in range(n):
                        values[start + v, place] = power[u, v]
            if restart > 0:
                place = after[d]
                for u in range(n):
                    start = pair_ptr[graph] - origin + u * n
                    for v in range(n):
                        values[start + v, place] = restart * rank[u, v]
