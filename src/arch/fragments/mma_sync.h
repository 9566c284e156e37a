// mma.sync: which lane holds which element of A, B and C.
// Source: PTX ISA, "Matrix Fragments for mma.m16n8k*". With g = lane / 4, q = lane % 4, every
// layout below is one line of that section: the C fragment of m16n8, for example, is row g +
// 8*(i/2), column 2q + i%2.
#pragma once

#include "layout/parse.h"
#include "layout/tiled_mma.h"

namespace tilewright::arch {

/// f16 and bf16, k = 16.
inline constexpr MmaAtom kMmaM16N8K16 = {
    make_shape(16, 8, 16), make_layout(32), "((4,8),(2,2,2)):((32,1),(16,8,128))"_layout,
    "((4,8),(2,2)):((16,1),(8,64))"_layout, "((4,8),(2,2)):((32,1),(16,8))"_layout};

/// f16 and bf16, k = 8.
inline constexpr MmaAtom kMmaM16N8K8 = {
    make_shape(16, 8, 8), make_layout(32), "((4,8),(2,2)):((32,1),(16,8))"_layout,
    "((4,8),2):((16,1),8)"_layout, "((4,8),(2,2)):((32,1),(16,8))"_layout};

/// tf32, k = 8.
inline constexpr MmaAtom kMmaM16N8K8Tf32 = {
    make_shape(16, 8, 8), make_layout(32), "((4,8),(2,2)):((16,1),(8,64))"_layout,
    "((4,8),2):((8,1),32)"_layout, "((4,8),(2,2)):((32,1),(16,8))"_layout};

/// e4m3, e5m2, s8 and u8, k = 32.
inline constexpr MmaAtom kMmaM16N8K32 = {
    make_shape(16, 8, 32), make_layout(32), "((4,8),(4,2,2)):((64,1),(16,8,256))"_layout,
    "((4,8),(4,2)):((32,1),(8,128))"_layout, "((4,8),(2,2)):((32,1),(16,8))"_layout};

/// e4m3, e5m2, s8 and u8, k = 16.
inline constexpr MmaAtom kMmaM16N8K16Bytes = {
    make_shape(16, 8, 16), make_layout(32), "((4,8),(4,2)):((64,1),(16,8))"_layout,
    "((4,8),4):((32,1),8)"_layout, "((4,8),(2,2)):((32,1),(16,8))"_layout};

}  // namespace tilewright::arch
