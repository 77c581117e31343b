"""Conjugate gradients for the Laplacian of a weighted graph."""

import numpy as np

from magnetite.kernels.cpu.compile import kernel


@kernel(seconds=2)
def solve_laplacian(start, columns, weights, degree, wanted, solution, steps, tolerance):
    """Solve `(D − W) x = b` in place, preconditioned by `D`, and return whether the residual is small enough.

    `b` sums up to 0 in every component, so that the system has solutions; nodes of degree 0 keep 0.
    """
    n = len(degree)
    residual, direction, product = wanted.copy(), np.zeros(n), np.zeros(n)
    goal, old = 0.0, 0.0
    for i in range(n):
        goal += wanted[i] * wanted[i]
        solution[i] = 0
        if degree[i] > 0:
            direction[i] = residual[i] / degree[i]
            old += residual[i] * direction[i]
    goal *= tolerance * tolerance
    for _ in range(steps):
        left = 0.0
        for i in range(n):
            left += residual[i] * residual[i]
        if left <= goal:
            return True
        curvature = 0.0
        for i in range(n):
            total = degree[i] * direction[i]
            for place in range(start[i], start[i + 1]):
                total -= weights[place] * direction[columns[place]]
            product[i] = total
            curvature += total * direction[i]
        if curvature <= 0:  # rounding errors are all that is left
            return False
        length, new = old / curvature, 0.0
        for i in range(n):
            solution[i] += length * direction[i]
            residual[i] -= length * product[i]
            if degree[i] > 0:
                new += residual[i] * residual[i] / degree[i]
        for i in range(n):
            direction[i] = new / old * direction[i] + (residual[i] / degree[i] if degree[i] > 0 else 0.0)
        old = new
    return False
