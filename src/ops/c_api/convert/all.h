// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// Every struct of the C interface.
#pragma once

#include "ops/c_api/convert/plan.h"
#include "ops/c_api/convert/attention.h"
#include "ops/c_api/convert/sparse_attention.h"
#include "ops/c_api/convert/decode.h"
#include "ops/c_api/convert/linear.h"
#include "ops/c_api/convert/quantize.h"
#include "ops/c_api/convert/moe.h"
#include "ops/c_api/convert/cache.h"
#include "ops/c_api/convert/indexer.h"
#include "ops/c_api/convert/hyper_connection.h"
#include "ops/c_api/convert/sample.h"
#include "ops/c_api/convert/tokenizer.h"
#include "ops/c_api/convert/llm.h"
