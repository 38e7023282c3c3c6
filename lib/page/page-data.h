/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The data of a page as JSON, which script/model.js reads. */

#include "page/page-tree.h"
#include "page/page-writer.h"

typedef struct PageData {
    const char *page; /* "flame", "heat" or "incident" */
    const PageInput *input;
    const PageFlameOptions *options; /* NULL: as they start */
    const PageTree *tree;            /* sorted */
    bool heat;                       /* with the cells of the heat map */
} PageData;

int page_data_write(PageWriter *w, const PageData *data);
