/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The labels of samples, before any rule changes them; series.h lists them. */

#include "interval/interval.h"
#include "label/label-set.h"

#define SERIES_LABEL_EVENT   "event"
#define SERIES_LABEL_SERVICE "service_name"

/* `label` is one of the profile. The set is empty before. 0 or -ENOMEM. */
int series_label_make(const Interval *interval, const char *host, const ProfileLabel *label,
                      LabelSet *ret);
/* Escapes and cuts a value and puts it into the set, unless the set is full. */
int series_label_put(LabelSet *set, const char *name, Bytes value);
/* The name of the event of a label. */
Bytes series_label_event(const Profile *profile, const ProfileLabel *label);
