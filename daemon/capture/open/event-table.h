/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/open/sampler-state.h"

/* Must be called again when rings came or went. */
int event_table_of_sampler(Sampler *sampler);
int event_table_of_session(SamplerSession *session);
