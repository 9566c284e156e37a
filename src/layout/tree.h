// Nested tuples as values: the shape of the nesting (Profile) and what every such tuple can do.
//
// IntTuple, Layout and Tiler are trees: a Profile plus, per leaf, some payload in plain arrays. The
// nodes stand in preorder, so a mode (a subtree) is a contiguous range of nodes and of leaves, and
// every operation that only moves modes about is written once, here.
#pragma once

#include "layout/laws.h"

#include <concepts>
#include <cstdint>

namespace tilewright {

inline constexpr int kMaxLeaves = 24;
inline constexpr int kMaxNodes = 48;

/// The nesting of a tuple. `(a,(b,c))` has nodes `( a ( b c`, so span = {5, 0, 3, 0, 0}.
/// The default is the empty tuple `()`.
struct Profile {
  int num_nodes = 1;
  int num_leaves = 0;
  /// Per node: 0 at a leaf, else the number of nodes of the subtree, the node itself included.
  int span[kMaxNodes] = {1};

  constexpr bool operator==(const Profile&) const = default;

  constexpr bool is_leaf(int node = 0) const { return span[node] == 0; }
  /// Nodes that the subtree at `node` occupies.
  constexpr int width(int node) const { return is_leaf(node) ? 1 : span[node]; }
  /// Leaves of the subtree at `node`.
  constexpr int leaves_at(int node) const { return count_leaves(node, node + width(node)); }
  /// Leaves before `node` in preorder: the index of the subtree's first leaf.
  constexpr int first_leaf(int node) const { return count_leaves(0, node); }
  constexpr int rank_at(int node) const {
    if (is_leaf(node)) return 1;
    int children = 0;
    for (int child = node + 1; child < node + span[node]; child += width(child)) ++children;
    return children;
  }
  /// Node of the i-th child of the tuple at `node`; a leaf is its own only child.
  constexpr int child(int node, int i) const {
    if (is_leaf(node)) return node;
    int at = node + 1;
    for (; i > 0; --i) at += width(at);
    return at;
  }
  constexpr int depth_at(int node) const {
    if (is_leaf(node)) return 0;
    int deepest = 0;
    for (int i = node + 1; i < node + span[node]; i += width(i)) {
      const int below = depth_at(i);
      if (below > deepest) deepest = below;
    }
    return deepest + 1;
  }

  static constexpr Profile leaf() {
    Profile profile;
    profile.num_leaves = 1;
    profile.span[0] = 0;
    return profile;
  }

 private:
  constexpr int count_leaves(int begin, int end) const {
    int count = 0;
    for (int node = begin; node < end; ++node) count += span[node] == 0;
    return count;
  }
};

/// A value with a profile and a payload per leaf. `set_leaf(i, from, j)` copies one leaf's payload.
template <class T>
concept Tree = requires(T t, const T& from) {
  { t.profile } -> std::same_as<Profile&>;
  t.set_leaf(0, from, 0);
};

/// Number of modes; 1 for a single leaf, 0 for `()`.
template <Tree T>
constexpr int rank(const T& tree) {
  return tree.profile.rank_at(0);
}

/// Nesting depth: 0 for a leaf, 1 for a flat tuple.
template <Tree T>
constexpr int depth(const T& tree) {
  return tree.profile.depth_at(0);
}

template <Tree T>
constexpr bool is_leaf(const T& tree) {
  return tree.profile.is_leaf();
}

/// The subtree rooted at a node, as a tree of its own.
template <Tree T>
constexpr T subtree(const T& tree, int node) {
  law::must_be_a_constant_in_device_code();
  T out;
  out.profile.num_nodes = tree.profile.width(node);
  out.profile.num_leaves = tree.profile.leaves_at(node);
  for (int i = 0; i < out.profile.num_nodes; ++i) out.profile.span[i] = tree.profile.span[node + i];
  const int first = tree.profile.first_leaf(node);
  for (int i = 0; i < out.profile.num_leaves; ++i) out.set_leaf(i, tree, first + i);
  return out;
}

/// The i-th mode. Mode 0 of a leaf is the leaf.
template <Tree T>
constexpr T mode(const T& tree, int i) {
  if (i < 0 || i >= rank(tree)) law::mode_must_exist(i, rank(tree));
  return subtree(tree, tree.profile.child(0, i));
}

/// Adds a mode at the end of a tuple: the one way in which trees grow.
template <Tree T>
constexpr void push_mode(T& tuple, const T& added) {
  law::must_be_a_constant_in_device_code();
  Profile& profile = tuple.profile;
  const int nodes = profile.num_nodes + added.profile.num_nodes;
  const int leaves = profile.num_leaves + added.profile.num_leaves;
  if (nodes > kMaxNodes) law::must_fit_the_capacity_of_a_layout("nodes", nodes, kMaxNodes);
  if (leaves > kMaxLeaves) law::must_fit_the_capacity_of_a_layout("leaves", leaves, kMaxLeaves);
  for (int i = 0; i < added.profile.num_nodes; ++i) {
    profile.span[profile.num_nodes + i] = added.profile.span[i];
  }
  for (int i = 0; i < added.profile.num_leaves; ++i) {
    tuple.set_leaf(profile.num_leaves + i, added, i);
  }
  profile.num_nodes = nodes;
  profile.num_leaves = leaves;
  profile.span[0] = nodes;
}

/// A tuple of the given trees as its modes.
template <Tree T, std::same_as<T>... Rest>
constexpr T tuple_of(const T& first, const Rest&... rest) {
  T out;
  push_mode(out, first);
  (push_mode(out, rest), ...);
  return out;
}

/// Adds all modes of `added` (itself, if it is a leaf) to the tuple.
template <Tree T>
constexpr void push_modes(T& tuple, const T& added, int begin = 0, int end = -1) {
  if (end < 0) end = rank(added);
  for (int i = begin; i < end; ++i) push_mode(tuple, mode(added, i));
}

/// A leaf becomes a tuple of one mode; a tuple stays.
template <Tree T>
constexpr T as_tuple(const T& tree) {
  return is_leaf(tree) ? tuple_of(tree) : tree;
}

/// A tuple of one mode becomes that mode.
template <Tree T>
constexpr T unwrap(const T& tree) {
  return !is_leaf(tree) && rank(tree) == 1 ? mode(tree, 0) : tree;
}

/// All leaves in one flat tuple; a leaf stays a leaf.
template <Tree T>
constexpr T flatten(const T& tree) {
  if (is_leaf(tree)) return tree;
  T out;
  for (int node = 0; node < tree.profile.num_nodes; ++node) {
    if (tree.profile.is_leaf(node)) push_mode(out, subtree(tree, node));
  }
  return out;
}

/// The named modes, in that order; one mode comes back bare: select(((a,b),c), 0) = (a,b).
template <Tree T, std::same_as<int>... Modes>
constexpr T select(const T& tree, int first, Modes... modes) {
  if constexpr (sizeof...(modes) == 0) {
    return mode(tree, first);
  } else {
    T out;
    push_mode(out, mode(tree, first));
    (push_mode(out, mode(tree, modes)), ...);
    return out;
  }
}

/// Modes [begin, end) as a tuple (CuTe: take).
template <Tree T>
constexpr T take(const T& tree, int begin, int end) {
  T out;
  push_modes(out, tree, begin, end);
  return out;
}

/// Modes [begin, end) become one mode: group((a,b,c,d), 1, 3) = (a,(b,c),d).
template <Tree T>
constexpr T group(const T& tree, int begin, int end) {
  T out;
  push_modes(out, tree, 0, begin);
  push_mode(out, take(tree, begin, end));
  push_modes(out, tree, end, rank(tree));
  return out;
}

/// One more mode at the end; append((), x) = (x), append(a, x) = (a,x).
template <Tree T>
constexpr T append(const T& tree, const T& added) {
  T out = as_tuple(tree);
  push_mode(out, added);
  return out;
}

/// One more mode at the front.
template <Tree T>
constexpr T prepend(const T& tree, const T& added) {
  T out;
  push_mode(out, added);
  push_modes(out, tree);
  return out;
}

/// Copies of `filler` at the end until the rank is `wanted`.
template <Tree T>
constexpr T append_to_rank(const T& tree, int wanted, const T& filler) {
  if (rank(tree) >= wanted) return tree;
  T out = as_tuple(tree);
  while (rank(out) < wanted) push_mode(out, filler);
  return out;
}

/// The tree with its i-th mode exchanged.
template <Tree T>
constexpr T replace(const T& tree, int i, const T& by) {
  T out;
  push_modes(out, tree, 0, i);
  push_mode(out, by);
  push_modes(out, tree, i + 1, rank(tree));
  return out;
}

/// Pairs up the modes of two trees: zip((a,b), (c,d)) = ((a,c),(b,d)).
template <Tree T>
constexpr T zip(const T& a, const T& b) {
  if (rank(a) != rank(b)) law::a_must_have_as_many_modes_as_b("zip", rank(a), rank(b));
  T out;
  for (int i = 0; i < rank(a); ++i) push_mode(out, tuple_of(mode(a, i), mode(b, i)));
  return out;
}

}  // namespace tilewright
