/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* HTTP requests of all destinations: libcurl's multi interface on the loop. The only includer of
 * libcurl. */

#include "loop/loop.h"
#include "transport/transport-types.h"
#include "util/buffer.h"

int transport_new(Loop *loop, Transport **ret);
Transport *transport_free(Transport *transport);
DEFINE_CLEANUP(Transport *, transport_free);

int transport_send(Transport *transport, const TransportOptions *options, TransportRequest **ret);
/* `done` is not called any more. Accepts NULL. */
TransportRequest *transport_cancel(TransportRequest *request);
