"""What goes into a container may come out of it: pairs of bodies that must differ, and pairs that stay equal."""

import pytest

from magnetite.code import build
from tests.code.dataflow.test_subtle_pairs import hash_of, swapped

CHANGED_THROUGH = {
    "a list": ("t = [xs, 1]", "t[0].append(5)"),
    "a tuple": ("t = xs, 1", "t[0].append(5)"),
    "a dictionary": ("t = {k: xs}", "t[k].append(5)"),
    "a set": ("t = {xs}", "t.pop().append(5)"),
    "nested containers": ("t = {k: [(xs,)]}", "t[k][0][0].append(5)"),
    "append": ("t = []\nt.append(xs)", "t[0].append(5)"),
    "append to an attribute": ("self.t.append(xs)", "self.t[0].append(5)"),
    "insert": ("t = []\nt.insert(0, xs)", "t[0].append(5)"),
    "extend": ("t = []\nt.extend([xs])", "t[0].append(5)"),
    "setdefault": ("t = {}\nt.setdefault(k, xs)", "t[k].append(5)"),
    "update": ("t = {}\nt.update({k: xs})", "t[k].append(5)"),
    "update by keyword": ("t = {}\nt.update(p=xs)", "t['p'].append(5)"),
    "a subscript": ("d[k] = xs", "d[k].append(5)"),
    "a slice that is stored": ("t = [0]\nt[:] = [xs]", "t[0].append(5)"),
    "an empty slice that is stored": ("t = [0]\nt[0:0] = [xs]", "t[0].append(5)"),
    "a slice with steps": ("t = [0]\nt[::2] = [xs]", "t[0].append(5)"),
    "a slice beside another target": ("t = [0]\nt[0:1], u = [xs], 1", "t[0].append(5)"),
    "a slice that takes from a list": ("t = [0]\nu = [xs]\nt[:] = u", "t[0].append(5)"),
    "a slice that grows": ("t = [0]\nt[:] += [xs]", "t[0].append(5)"),
    "a slice of an attribute": ("self.t[1:] = [xs]", "self.t[1].append(5)"),
    "a slice by its name": ("t = [0]\nt[slice(1)] = [xs]", "t[0].append(5)"),
    "a slice by __setitem__": ("t = [0]\nt.__setitem__(slice(1), [xs])", "t[0].append(5)"),
    "an attribute": ("a.r = xs", "a.r.append(5)"),
    "setattr": ("setattr(a, k, xs)", "getattr(a, k).append(5)"),
    "the attribute of an attribute": ("r = a.b\nr.c = xs", "a.b.c.append(5)"),
    "augmented assignment": ("t = []\nt += [xs]", "t[0].append(5)"),
    "unpacking": ("t = [xs, 1]\np, q = t", "p.append(5)"),
    "star-unpacking": ("t = [1, xs]\np, *q = t", "q[0].append(5)"),
    "a star in a display": ("t = [xs]\nu = [*t, 1]", "u[0].append(5)"),
    "a mapping in a display": ("t = {k: xs}\nu = {**t}", "u[k].append(5)"),
    "a loop": ("t = [xs, ys]", "for p in t:\n    p.append(5)"),
    "zip": ("t = [xs]", "for p, q in zip(t, ys):\n    p.append(5)"),
    "enumerate": ("t = [xs]", "for p, q in enumerate(t):\n    q.append(5)"),
    "sorted": ("t = [xs]", "sorted(t)[0].append(5)"),
    "list": ("t = [xs]", "list(t)[0].append(5)"),
    "reversed": ("t = [xs]", "for p in reversed(t):\n    p.append(5)"),
    "values": ("t = {k: xs}", "for p in t.values():\n    p.append(5)"),
    "items": ("t = {k: xs}", "for p, q in t.items():\n    q.append(5)"),
    "get": ("t = {k: xs}", "t.get(k).append(5)"),
    "pop": ("t = [xs]", "t.pop().append(5)"),
    "next": ("t = iter([xs])", "next(t).append(5)"),
    "max": ("t = [xs, ys]", "max(t).append(5)"),
    "sum": ("t = [[xs], [ys]]", "sum(t, [])[0].append(5)"),
    "a slice": ("t = [xs]\nu = t[:]", "u[0].append(5)"),
    "a copy": ("t = [xs]\nu = t.copy()", "u[0].append(5)"),
    "a shallow copy of an object": ("a.r = xs\nu = copy.copy(a)", "u.r.append(5)"),
    "a concatenation": ("t = [xs] + ys", "t[0].append(5)"),
    "a repetition": ("t = [xs] * 2", "t[0].append(5)"),
    "walrus": ("", "(r := xs).append(1)"),
    "a condition": ("", "(xs if c else ys).append(1)"),
    "or": ("", "(c or xs).append(1)"),
    "a display at once": ("", "[xs, ys][0].append(1)"),
    "a store into a condition": ("", "(xs if c else ys)[0] = 1"),
    "a comprehension": ("t = [p for p in (xs, ys)]", "t[0].append(5)"),
    "a comprehension over a container": ("t = [xs]\nu = [p for p in t]", "u[0].append(5)"),
    "a comprehension of a dictionary": ("t = {p: xs for p in ys}", "t[k].append(5)"),
    "a generator": ("t = [xs]", "for p in (q for q in t):\n    p.append(5)"),
    "a constructor": ("t = Box(xs)", "t.item.append(5)"),
    "a keyword of a constructor": ("t = Box(item=xs)", "t.item.append(5)"),
    "a constructor in a module": ("t = m.Box(item=xs)", "t.item.append(5)"),
    "a method of a constructed object": ("t = Box(xs)", "t.change()"),
    "with": ("", "with nullcontext(xs) as p:\n    p.append(5)"),
    "match": ("t = [xs]", "match t:\n    case [p]:\n        p.append(5)"),
    "match of a mapping": ("t = {'k': xs}", "match t:\n    case {'k': p}:\n        p.append(5)"),
    "match of an attribute": ("a.r = xs", "match a:\n    case Box(r=p):\n        p.append(5)"),
    "match of a rest": ("t = [1, xs]", "match t:\n    case [p, *q]:\n        q[0].append(5)"),
    "several targets": ("xs = p = []", "p.append(5)"),
    "a method by another name": ("add = xs.append", "add(5)"),
    "a method by another name that puts": ("t = []\nadd = t.append\nadd(xs)", "t[0].append(5)"),
    "a method in a list": ("fs = [xs.append]", "fs[0](5)"),
    "a method in a dictionary": ("fs = {k: xs.append}", "fs[k](5)"),
    "a method in an attribute": ("a.r = xs.append", "a.r(5)"),
    "a method that is put into a list": ("t = []\nt.append(xs.append)", "t[0](5)"),
    "a method in a loop": ("fs = [xs.append]", "for p in fs:\n    p(5)"),
    "a method by getattr": ("", "getattr(xs, 'append')(5)"),
    "a method by getattr and a name": ("add = getattr(xs, 'append')", "add(5)"),
    "one of two methods": ("", "(xs.append if c else ys.append)(5)"),
    "a method for a nested function": ("def g(p, q):\n    p(q)", "g(xs.append, 5)"),
    "a named method for a nested function": ("def g(p, q):\n    p(q)\nadd = xs.append", "g(add, 5)"),
    "a method as an argument": ("", "list(map(xs.append, ys))"),
    "a method as a keyword": ("", "walk(ys, found=xs.append)"),
    "a method or a nested function": ("def g(p):\n    xs.pop()\nfs = [ys.append, g]", "fs[0](5)"),
    "a nested function beside a method": ("def g(p):\n    xs.pop()\ng.r = ys.append", "g(5)"),
    "a method in a list that puts": ("t = []\nfs = [t.append]\nfs[0](xs)", "t[0].append(5)"),
    "a method in an attribute that puts": ("t = []\na.r = t.append\na.r(xs)", "t[0].append(5)"),
    "one of two methods that puts": ("t = []\n(ys.append if c else t.append)(xs)", "t[0].append(5)"),
    "a method of a class": ("", "list.append(xs, 5)"),
    "a method of a class that puts": ("t = []\nlist.append(t, xs)", "t[0].append(5)"),
    "an attribute of a class": ("class K:\n    r = xs", "K.r.append(5)"),
    "an attribute of a class by an instance": ("class K:\n    r = xs\nt = K()", "t.r.append(5)"),
    "the container of a container": ("t = [xs]\nu = [t]", "u[0][0].append(5)"),
    "a container that is put away before": ("t = []\nu = [t]\nt.append(xs)", "u[0][0].append(5)"),
}

LOOKS = "n = len(xs)"


@pytest.mark.parametrize("case", CHANGED_THROUGH)
def test_changes_through_containers_are_seen(case):
    before, change = CHANGED_THROUGH[case]
    one, other = map(hash_of, swapped(change, LOOKS, before=before, after="return n"))
    assert one != other


SEEN_THROUGH = {
    "an element": ("t = [xs]", "n = len(t[0])"),
    "the container": ("t = [xs]", "n = str(t)"),
    "a copy": ("t = [xs]\nu = list(t)", "n = len(u[0])"),
    "an unpacked element": ("p, q = t = [xs, ys]", "n = len(p)"),
    "a loop": ("t = [xs]", "for p in t:\n    n = len(p)"),
    "a constructed object": ("t = Box(xs)", "n = len(t.item)"),
}


@pytest.mark.parametrize("case", SEEN_THROUGH)
def test_changes_are_seen_through_containers(case):
    before, look = SEEN_THROUGH[case]
    one, other = map(hash_of, swapped("xs.append(5)", look, before=before, after="return n"))
    assert one != other


READ_LATER = {
    "a generator": "(v for v in xs)",
    "a generator of new objects": "(v + 1 for v in xs)",
    "a generator that looks elsewhere": "(len(xs) for v in ys)",
    "a generator in a call": "enumerate(v for v in xs)",
    "a generator or a list": "(v for v in xs) if c else []",
    "zip": "zip(xs, ys)",
    "map": "map(str, xs)",
    "enumerate": "enumerate(xs)",
    "reversed": "reversed(xs)",
    "filter": "filter(None, xs)",
    "iter": "iter(xs)",
    "chain": "itertools.chain(ys, xs)",
    "keys": "xs.keys()",
    "values": "xs.values()",
    "items": "xs.items()",
}


@pytest.mark.parametrize("before, used", [("z = {}", "z"), ("z = {}\nr = z", "r"), ("t = [{}]", "t[0]")])
@pytest.mark.parametrize("case", READ_LATER)
def test_iterators_read_where_they_are_used(case, before, used):
    made = before.format(READ_LATER[case])
    one, other = map(hash_of, swapped("xs.append(1)", f"n = list({used})", before=made, after="return n"))
    assert one != other


RUN_LATER = {
    "any": ("g = (xs.pop() for v in ys)", "any(g)"),
    "a loop": ("g = (xs.pop() for v in ys)", "for p in g:\n    pass"),
    "another name": ("g = (xs.pop() for v in ys)\nh = g", "any(h)"),
    "an element": ("g = (v.pop() for v in [xs])", "any(g)"),
    "one of several": ("g, h = (xs.pop() for v in ys), 1", "any(g)"),
    "walrus": ("(g := (xs.pop() for v in ys))", "any(g)"),
    "a lambda": ("g = map(lambda v: xs.pop(), ys)", "any(g)"),
    "a nested function": ("def p(v):\n    xs.pop()\ng = map(p, ys)", "any(g)"),
}


@pytest.mark.parametrize("case", RUN_LATER)
def test_generators_run_where_they_are_used(case):
    before, use = RUN_LATER[case]
    one, other = map(hash_of, swapped(use, LOOKS, before=before, after="return n"))
    assert one != other


def test_generators_see_variables_that_are_bound_later():
    pair = swapped("p = 2", "n = list(g)", before="p = 1\ng = (v + p for v in xs)", after="return n")
    one, other = map(hash_of, pair)
    assert one != other


SHARED = {
    "two instances": ("p, q = K(), K()", "p.r.append(1)", "n = len(q.r)"),
    "a class and an instance": ("p = K()", "p.r.append(1)", "n = len(K.r)"),
    "a class below": ("class J(K):\n    pass\np = J()", "p.r.append(1)", "n = len(K.r)"),
}


@pytest.mark.parametrize("case", SHARED)
def test_attributes_of_a_class_are_shared(case):
    before, change, look = SHARED[case]
    pair = swapped(change, look, before=f"class K:\n    r = []\n{before}", after="return n")
    one, other = map(hash_of, pair)
    assert one != other


INDEPENDENT = {
    "what is beside it in a list": swapped("xs.append(1)", "n = len(ys)", before="t = [xs, ys]", after="return n"),
    "what is beside it in a call": swapped("xs.append(1)", "n = len(ys)", before="t = Box(xs, ys)", after="return n"),
    "the elements of a list that grows": swapped("t.append(1)", "n = len(xs)", before="t = [xs]", after="return n"),
    "a copy that grows": swapped("u.append(1)", "n = len(t)", before="t = [xs]\nu = list(t)", after="return n"),
    "a copy of a list": swapped("r.append(1)", "n = len(xs)", before="r = xs.copy()", after="return n"),
    "appending to two lists": swapped("p.append(a)", "q.append(a)", before="p = []\nq = []", after="return p, q"),
    "numbers": swapped("n += 1", "y = str(t)", before="n = 0\nt = [n]", after="return y, n"),
    "numbers that are counted": swapped(
        "n += len(xs)", "y = str(t)", before="n = 0\nt = []\nt.append(n)", after="return y, n"
    ),
    "strings": swapped("s += 'x'", "y = str(t)", before="s = f'{a}'\nt = {k: s}", after="return y, s"),
    "the variable of a loop over numbers": (
        "t = []\nfor i in range(a):\n    t.append(i)\n    i += 1\n    y = str(t)\nreturn y",
        "t = []\nfor i in range(a):\n    t.append(i)\n    y = str(t)\n    i += 1\nreturn y",
    ),
    "an iterator over something else": swapped("xs.append(1)", "n = list(z)", before="z = zip(ys)", after="return n"),
    "a list of what an iterator gave": swapped(
        "xs.append(1)", "n = len(t)", before="t = list(enumerate(xs))", after="return n"
    ),
    "the largest that a generator gave": swapped(
        "xs.append(1)", "n = str(m)", before="m = max(v + 1 for v in xs)", after="return n"
    ),
    "a method of something else": swapped("fs[0](1)", "n = len(xs)", before="fs = [ys.append]", after="return n"),
    "a function of a module as an argument": swapped(
        "p = reduce(operator.add, xs)", "n = len(xs)", after="return n, p"
    ),
    "returned together": swapped("xs.append(1)", "n = len(ys)", after="return [xs, ys], n"),
    "passed on together": swapped("xs.append(1)", "n = len(ys)", before="print([xs, ys])", after="return n"),
    "several targets of a number": swapped("p += 1", "y = q", before="p = q = 0", after="return p, y"),
}


@pytest.mark.parametrize("case", INDEPENDENT)
def test_independent_objects_stay_independent(case):
    one, other = map(hash_of, INDEPENDENT[case])
    assert one == other


def test_many_containers_in_a_chain():
    lines = ["t0 = [xs]", *(f"t{k} = [t{k - 1}]" for k in range(1, 200)), "t199[0].change()", "return len(xs)"]
    graph = build("def f(xs):\n" + "".join(f"    {line}\n" for line in lines))
    assert any(edge.type == "LAST_WRITE" and graph.lines[edge.source] == 202 for edge in graph.edges)
