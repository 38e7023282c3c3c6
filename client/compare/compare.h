/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* `diff` and `changed` share this code: it loads two views of one kind and compares them. */

#include "client/view/view.h"
#include "profile/diff/profile-diff.h"

/* The older side of a comparison, as --baseline names it. */
typedef struct Baseline {
    bool is_given;
    const char *file;  /* NULL: the same source, earlier */
    uint64_t shift_us; /* by how much; 0: by the length of the window */
} Baseline;

/* Field: Baseline. "yesterday", a span like "1h", or a recording. */
int option_baseline(const Option *option, const char *argument, void *field);

/* Recordings that are one source, since --baseline or `changed` looks for an earlier window in all
 * of them: copies the settings with a window that ends with the newest sample. It has the length of
 * --last, else `usual_us`, else of all (0), but leaves `earlier_us` before it where there is as
 * much. Without the time of day, or for a running profd, settings stay. An ExitStatus. */
int compare_settle_window(const ViewSettings *settings, char **files, uint64_t usual_us,
                          uint64_t earlier_us, ViewSettings *ret);

/* Loads the window of `after` from the same source, `shift_us` earlier (0: right before it). An
 * ExitStatus; without samples there, *ret has no profile or an empty one. */
int compare_load_earlier(Context *c, const ViewSettings *settings, char **files,
                         const ViewRequest *request, const View *after, uint64_t shift_us,
                         View *ret);

/* The number of the event in the other view; PROFILE_NONE: it has no samples of such an event. */
uint32_t compare_event(const View *view, const View *other, uint32_t event);

/* How spans of time are kept apart in a window of this length; 0: it is not known. */
uint64_t compare_bucket_ns(uint64_t window_us);

/* Compares one event of `after`, which `before` has. 0 or -ENOMEM. */
int compare_views(const View *before, const View *after, uint32_t event, const DiffOptions *options,
                  ProfileDiff **ret);

/* The unit in which rates are shown: "CPUs" for events whose period is time, else "samples/s". */
const char *compare_unit(const View *view, uint32_t event);
/* A rate by periods of such an event, as a figure of that unit. */
double compare_rate(const View *view, uint32_t event, double rate);

/* For JSON: an object with the samples of the event on one side of a comparison (PROFILE_NONE: it
 * has none), and what is missing or folded of them. */
void compare_put_side(Fields *f, const char *name, const View *view, uint32_t event);

int compare_no_memory(void);
