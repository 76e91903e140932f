"""Numbers that can be drawn in proportion to their size: a tree of sums, 16 children to a node, compiled.

Millions of leaves, 32 bits each; drawing or changing one touches a few cache lines.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from protege.kernels import kernel

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

WIDTH: Final = 16  # children of a node: one line of the processor's cache


class Tree(NamedTuple):
    """Leaves and their sums, WIDTH at a time, level by level from the leaves to the total."""

    sums: Floats
    levels: Ints  # where each level starts; the last one is the total alone


def tree_over(leaves: int) -> Tree:
    """A tree of zeros."""
    levels, start, size = [0], 0, leaves
    while size > 1:
        size = -(-size // WIDTH)
        start += size * WIDTH
        levels.append(start)
    return Tree(np.zeros(start + 1, np.float32), np.array(levels, np.int64))


@kernel
def sum_node(tree: Tree, level: int, node: int) -> None:
    """Make one sum anew from its parts. So sums never drift, nor depend on how the parts came about."""
    start = tree.levels[level - 1] + node * WIDTH
    total = np.float32(0)
    for child in range(start, start + WIDTH):
        total += tree.sums[child]
    tree.sums[tree.levels[level] + node] = total


@kernel
def sum_up(tree: Tree, touched: Ints) -> None:
    """Make the sums above the touched leaves right again; `touched` is used up."""
    count = len(touched)
    for level in range(1, len(tree.levels)):
        kept = 0
        for i in range(count):
            node = touched[i] // WIDTH
            if kept == 0 or touched[kept - 1] != node:
                sum_node(tree, level, node)
                touched[kept] = node
                kept += 1
        count = kept


@kernel
def sum_all(tree: Tree) -> None:
    for level in range(1, len(tree.levels)):
        for node in range((tree.levels[level] - tree.levels[level - 1]) // WIDTH):
            sum_node(tree, level, node)


@kernel
def find(tree: Tree, targets: npt.NDArray[np.float64], slots: Ints) -> None:
    """The leaf in which each target falls when all leaves are laid end to end; never one of 0. `targets` is used up."""
    for i in range(len(targets)):
        slots[i] = 0
    for level in range(len(tree.levels) - 2, -1, -1):
        first = tree.levels[level]
        # Touching every node before looking into any halves the time: memory brings many at once as fast as one.
        touched = np.float32(0)
        for i in range(len(targets)):
            touched += tree.sums[first + slots[i] * WIDTH] + tree.sums[first + slots[i] * WIDTH + WIDTH - 1]
        if touched < 0:
            return  # never, but the compiler does not know
        for i in range(len(targets)):
            start, left = first + slots[i] * WIDTH, targets[i]
            chosen, inside = 0, False
            for child in range(WIDTH):
                weight = tree.sums[start + child]
                if weight > 0:
                    chosen = child
                    inside = left < weight
                    if inside:
                        break
                    left -= weight
            targets[i] = left if inside else np.inf  # rounding carried it past the end: to the last leaf above 0
            slots[i] = slots[i] * WIDTH + chosen
