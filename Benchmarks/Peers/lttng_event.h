// SPDX-License-Identifier: Apache-2.0
//
// The event of lttng.c, in the way that LTTng reads such files: several
// times.
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER cbr_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lttng_event.h"

#if !defined(BENCH_LTTNG_EVENT_H) || \
    defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define BENCH_LTTNG_EVENT_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(
    cbr_bench, event, LTTNG_UST_TP_ARGS(uint64_t, token, uint32_t, argument),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer_hex(uint64_t, token, token)
            lttng_ust_field_integer(uint32_t, argument, argument)))

#endif

#include <lttng/tracepoint-event.h>
