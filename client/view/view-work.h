/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Inside of view_load(): one profile that is being made. `top` makes one after the other. */

#include "client/view/view-unwind.h"
#include "client/view/view.h"
#include "follow/follow.h"
#include "profile/frame-filter.h"
#include "profile/profile-builder.h"

typedef struct ViewWork {
    Context *context;
    const ViewSettings *settings;
    const ViewRequest *request;
    View *view;
    Selector selector;  /* its selection is that of the filter */
    FrameFilter frames; /* of the settings; applied when there are names */
    const char **events;
    ProfileOptions options;
    ViewUnwind *unwind; /* used by the builder */
    ProfileBuilder *builder;
    PdReader *reader; /* of a file; borrowed by the builder */
    Follow *follow;
    bool is_partial;
    bool lacks_coverage;   /* one of several recordings does not say what it covers */
    PdCoverage *coverages; /* of those that do, by the wall clock as the first of them has it */
    size_t n_coverages;
    uint64_t clock_difference, clock_id; /* of the first */
    ViewSettings common; /* `settings` may point here: the window of several recordings */
    char *binaries;      /* folder of the files that the running profd has kept; NULL: not known */
} ViewWork;

/* Makes the filter and the builder of the settings and the request. */
int view_work_begin(ViewWork *work);
void view_work_done(ViewWork *work);

/* Feeds the builder with recordings, with the window of the settings. Returns an ExitStatus;
 * failures were reported. STATUS_PARTIAL is no failure, and sets is_partial. */
int view_files_read(ViewWork *work, char **files);
/* The same with what the running profd has recorded. */
int view_live_read(ViewWork *work);
/* Asks the running profd for the folder of the files that it keeps, and for the name of its host.
 * An ExitStatus. */
int view_live_ask_host(Context *c, char **ret_binaries, char **ret_name);

/* Without a sample: complains that nothing matches, with similar names. Reads the recordings again
 * for these. An ExitStatus. */
int view_mismatch_complain(ViewWork *work, char **files);
/* Appends where the samples were looked for: " in 'FILE'". */
void view_mismatch_put_place(Buffer *out, const ViewWork *work, char **files);

/* Makes work->frames of the settings. 0 or -ENOMEM. */
int view_frame_begin(ViewWork *work);
void view_frame_done(FrameFilter *frames);
/* Complains that work->frames left no sample, with similar names. An ExitStatus. */
int view_frame_complain(ViewWork *work, char **files);

/* Writes the title and the subtitle of the view. 0 or -ENOMEM. */
int view_text_make(ViewWork *work, char **files);
