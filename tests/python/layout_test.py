"""Layouts in Python: the algebra, the hardware's layouts, drawings that equal the tool's files."""

import json
import pathlib
import subprocess
from xml.etree import ElementTree

import pytest

import tilewright
from tilewright import Layout
from tilewright.layout import Drawing, atoms, handoff, identity, ordered

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = pathlib.Path(tilewright.__file__).parent / "bin/tilewright"


def test_texts_tuples_and_names():
    assert str(Layout("(4,8):(8,1)")) == str(Layout((4, 8), (8, 1))) == "(4,8):(8,1)"
    assert Layout((4, 8)) == Layout("(4,8):(1,4)") and Layout(8, 2) == Layout("8:2") != Layout("8:1")
    assert Layout((4, (2, 4)), (1, (4, 8))).shape == (4, (2, 4))
    assert eval(repr(Layout("Sw<3,4,3> o 0 o (8,64):(64,1)"))).swizzle == "Sw<3,4,3>"
    assert Layout("wgmma.m64n64.C").size == 4096
    assert len({Layout("4:1"), Layout(4), Layout("4:2")}) == 2


def test_facts():
    layout = Layout("((2,2),8):((1,16),2)")
    assert (layout.size, len(layout), layout.cosize, layout.rank, layout.depth) == (32, 32, 32, 2, 2)
    assert (layout.shape, layout.stride, layout.swizzle) == (((2, 2), 8), ((1, 16), 2), None)
    assert identity((4, 8)).cosize is None and Layout("8:1").shape == 8


def test_offsets():
    layout = Layout("(4,8):(8,1)")
    assert layout(2, 3) == layout((2, 3)) == layout.offset((2, 3)) == 19 and layout(5) == 9
    assert list(layout) == layout.offsets() == [row * 8 + column for column in range(8) for row in range(4)]
    assert layout.offsets(2, 3) == [16, 24, 1]
    assert str(layout(2, None)) == "16 o (8):(1)" and layout(None, 3).size == 4


def test_algebra():
    a = Layout("(8,8):(8,1)")
    assert a @ Layout("(4,2):(2,1)") == a.composition("(4,2):(2,1)") == Layout("(4,2):(16,8)")
    assert (a @ [4, 2]).shape == (4, 2)
    assert a / [4, 2] == a.logical_divide("<4,2>") == Layout("((4,2),(2,4)):((8,32),(1,2))")
    assert Layout(4) * Layout("2:1") == Layout("(4,2):(1,4)")
    assert a.zipped_divide([4, 2]).shape == ((4, 2), (2, 4)) and a.tiled_divide([4, 2]).rank == 3
    assert a.flat_divide([4, 2]).rank == 4 and a.flatten() == a
    assert Layout("4:2").complement(16) == Layout("(2,2):(1,8)")
    assert Layout("(2,4):(1,2)").coalesce() == Layout(8) and Layout("((2,2),4)").coalesce((1, 1)) == Layout((4, 4))
    assert Layout("(4,2):(1,0)").filter() == Layout(4) and a.select(1) == Layout(8) and a.group(0, 2).rank == 1
    assert a.right_inverse() == a.left_inverse() == Layout("(8,8):(8,1)")
    assert Layout(8).append(Layout("2:8")) == Layout((8, 2)) and Layout(8).prepend(Layout("2:8")).shape == (2, 8)
    assert Layout(16).with_shape((4, 4)) == Layout((4, 4))
    b, c = Layout((2, 2)), Layout((3, 4))
    assert b.blocked_product(c).size == b.raked_product(c).size == 48
    assert b.blocked_product(c) != b.raked_product(c)
    assert [getattr(Layout(4), f"{kind}_product")(3).size for kind in ("zipped", "tiled", "flat")] == [12, 12, 12]
    assert Layout("(8,4)").tile_to_shape((16, 8), (0, 1)).size == 128
    assert a.local_tile([4, 2], (1, 0)).size == 8 and a.local_partition(Layout((4, 2)), 3).size == 8
    assert Layout(16).upcast(4) == Layout(4) and Layout(4).downcast(2) == Layout(8) == Layout(4).recast(16, 8)
    assert Layout((4, 8)).max_common_vector(Layout((2, 16))) == 32
    assert ordered((4, 8), (1, 0)) == Layout("(4,8):(8,1)") and identity((4, 8))(2, None).size == 8


def test_every_operation_of_the_tool_is_a_method():
    listed = subprocess.run([TOOL, "layout", "eval", "--help"], capture_output=True, text=True, check=True).stdout
    names = [line.split()[0] for line in listed.split("Operations:\n")[1].split("\n\n")[0].splitlines()]
    others = {"eval": "__init__", "coalesce_by": "coalesce", "ordered": None, "identity": None}
    assert len(names) > 30
    for name in names:
        method = others.get(name, name)
        assert method is None or hasattr(Layout, method), name


@pytest.mark.parametrize("call, error, text", [
    (lambda: Layout("(4,"), tilewright.ParseError, "expected a number"),
    (lambda: Layout("wgmma.m64n64.X"), tilewright.InvalidArgument, "wgmma.m64n64.C"),
    (lambda: Layout((4, 2.5)), TypeError, "a float in a layout"),
    (lambda: Layout("(4,8)").offsets(30, 3), tilewright.InvalidArgument, "begin = 30, count = 3; the size"),
    (lambda: identity((4, 8)).offsets(), tilewright.InvalidArgument, "coordinate layout"),
    (lambda: Layout("(4,6):(1,8)") @ Layout("8:3"), tilewright.InvalidArgument, "8:3"),
    (lambda: Layout(8).draw("upside down"), tilewright.InvalidArgument, "upside down"),
    (lambda: Layout(8).draw(element_bits=5), tilewright.InvalidArgument, "element_bits = 5"),
    (lambda: handoff("wgmma.m64n64.C", "smem.K.128B.16bit"), tilewright.InvalidArgument, "two fragments"),
    (lambda: atoms["(8,8)"], KeyError, "not the name"),
    (lambda: atoms["wgmma.m64n64.X"], KeyError, "wgmma.m64n64.C"),
])
def test_wrong_calls_are_named(call, error, text):
    with pytest.raises(error, match=text):
        call()


def drawn_by_the_tool(tmp_path, *words):
    path = tmp_path / "drawn.svg"
    subprocess.run([TOOL, "layout", *words, "--svg", path], check=True, capture_output=True)
    return path.read_text(encoding="utf-8")


def test_drawings_are_the_tools_files(tmp_path):
    for name in ["(8,8):(8,1)", "Sw<3,3,3> o 0 o (8,64):(64,1)", *atoms.find("m64n64.C"), "smem.K.128B.16bit",
                 *atoms.find("tmem.C.m128.n64")]:
        assert Layout(name)._repr_svg_() == drawn_by_the_tool(tmp_path, "draw", name), name
    assert atoms["wgmma.m64n64.C"]._repr_svg_() == Layout("wgmma.m64n64.C")._repr_svg_()
    tv = Layout("((4,8),(2,2)):((32,1),(16,8))")
    assert tv.draw("tv", tile=(16, 8)).svg == drawn_by_the_tool(
        tmp_path, "draw", str(tv), "--as", "tv", "--tile", "16", "8")
    part = Layout("(64,64):(64,1)").draw(rows=(8, 16), columns=12, element_bits=16)
    assert part.svg == drawn_by_the_tool(
        tmp_path, "draw", "(64,64):(64,1)", "--rows", "8:16", "--cols", "12", "--bits", "16")
    assert Layout("Sw<3,3,3> o 0 o (8,64):(64,1)").draw("memory", element_bits=16).svg == drawn_by_the_tool(
        tmp_path, "draw", "Sw<3,3,3> o 0 o (8,64):(64,1)", "--as", "memory", "--bits", "16")
    part.save(tmp_path / "part.svg")
    assert (tmp_path / "part.svg").read_text(encoding="utf-8") == part._repr_svg_()


def test_atoms():
    told = subprocess.run([TOOL, "layout", "atoms", "--json"], capture_output=True, check=True).stdout
    listed = json.loads(told)
    assert [each["name"] for each in listed] == list(atoms) and len(atoms) == len(listed) > 150
    atom = atoms["wgmma.m64n64.C"]
    assert (atom.name, atom.family, atom.element_bits, atom.size) == ("wgmma.m64n64.C", "wgmma.m64nN.C", 32, 4096)
    assert "wgmma" in atom.summary and repr(atom) == "atoms['wgmma.m64n64.C']" and atom.kind == "thread-value"
    assert "nothing" not in atoms and atoms.get("nothing") is None and "wgmma.m64n64.C" in atoms._repr_html_()


def test_handoffs(tmp_path):
    as_it_is = handoff("wgmma.m64n64.C", atoms["wgmma.m64k16.A"])
    assert as_it_is.verdict == "as they are" and as_it_is.drawing is None
    assert handoff("wgmma.m64n64.C", "wgmma.m64k32.A").data["values_to_move"] > 0
    through_tmem = handoff("tmem.C.m128.n64", "tmem.A.m128.k64.16bit")
    assert through_tmem.data["misplaced"] > 0 and isinstance(through_tmem.drawing, Drawing)
    assert through_tmem.drawing.svg == drawn_by_the_tool(
        tmp_path, "handoff", "--from", "tmem.C.m128.n64", "--to", "tmem.A.m128.k64.16bit")
    told = subprocess.run([TOOL, "layout", "handoff", "--from", "wgmma.m64n64.C", "--to", "wgmma.m64k16.A"],
                          capture_output=True, text=True, check=True).stdout
    assert str(as_it_is).strip() == told.strip()
    assert "</svg>" in through_tmem._repr_html_() and "<svg" not in as_it_is._repr_html_()


def test_drawings_are_pictures_that_a_page_can_hold():
    for name in ["(8,8):(8,1)", "wgmma.m64n64.C", "smem.K.128B.16bit"]:
        root = ElementTree.fromstring(Layout(name)._repr_svg_())
        assert root.tag.endswith("svg") and float(root.get("width")) > 100
        assert {child.tag.rsplit("}")[-1] for child in root.iter()} >= {"rect", "text"}
