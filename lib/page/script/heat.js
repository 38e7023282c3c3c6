// SPDX-License-Identifier: LGPL-2.1-or-later
// The heat map: a column is a second, a row an offset in it. A range of time is selected with the
// mouse or the keyboard, and a second one to compare it with.

const HEAT_LEFT = 60, HEAT_BOTTOM = 22, HEAT_TOP = 6, OVERVIEW = 34;
const HEAT_LABEL = '11px "Inter", system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';

// See page-heat.c.
function decodeHeat(data) {
    const heat = data.heat, nextRank = digitReader(heat.ranks), next = digitReader(heat.cells);
    const ranks = new Int32Array(heat.n_ranks), nodes = [], counts = [];
    const starts = new Int32Array(heat.n_buckets + 1), sums = new Float64Array(heat.n_buckets);
    let bucket = 0;

    for (let i = 0; i < heat.n_ranks; i++)
        ranks[i] = nextRank();
    for (let i = 0; i < heat.n_filled; i++, bucket++) {
        for (let gap = next(); gap > 0; gap--)
            starts[bucket++] = nodes.length;
        starts[bucket] = nodes.length;
        for (let left = next(), rank = 0; left > 0; left--) {
            const word = next(), count = word % 2 ? next() : 1;

            rank += Math.floor(word / 2);
            nodes.push(ranks[rank++]);
            counts.push(count);
            sums[bucket] += count;
        }
    }
    starts[heat.n_buckets] = nodes.length;
    return {
        starts, sums, nodes: Int32Array.from(nodes), counts: Float64Array.from(counts),
        n: heat.n_buckets, bucketMs: heat.bucket_ns / 1e6,
        rows: Math.max(1, Math.round(1e9 / heat.bucket_ns)),
        realMs: heat.real_ms, zoneMs: (heat.zone_min || 0) * 60000, startMs: heat.start_ms,
    };
}

// The own weights of nodes in buckets from <= i < to.
function weightsOfRange(heat, nNodes, [from, to]) {
    const self = new Float64Array(nNodes);

    for (let i = heat.starts[from]; i < heat.starts[to]; i++)
        self[heat.nodes[i]] += heat.counts[i];
    return self;
}

function samplesOfRange(heat, [from, to]) {
    let sum = 0;

    for (let i = from; i < to; i++)
        sum += heat.sums[i];
    return sum;
}

class HeatMap {
    // `on.range(range, isBase)` is called when a range was selected; null: none.
    constructor(host, heat, palette, on) {
        this.heat = heat;
        this.palette = palette;
        this.on = on;
        this.columns = Math.max(1, Math.ceil(heat.n / heat.rows));
        this.canvas = element("canvas", {
            tabindex: "0", role: "application", "aria-roledescription": "heat map",
            "aria-label": (heat.rows > 1 ? "Samples by time: columns are seconds, rows are offsets within a second. "
                : `Samples by time: a column is ${formatDuration(heat.bucketMs * 1e6)}. `) +
                "Arrow keys move, Shift with arrow keys selects a range, Escape clears it.",
            "aria-describedby": "announcement",
        });
        this.spacer = element("div", { class: "spacer" }, this.canvas);
        this.scroller = element("div", { class: "scroller" }, this.spacer);
        this.overview = element("canvas", { class: "overview", "aria-hidden": "true" });
        host.append(this.overview, this.scroller);
        this.cursor = this.anchor = 0;
        this.range = this.base = this.dragged = null;
        this.comparing = false;
        this.most = this.scaleEnd();
        this.scroller.addEventListener("scroll", () => this.draw(), { passive: true });
        this.canvas.addEventListener("pointerdown", (event) => this.press(event));
        this.canvas.addEventListener("pointermove", (event) => this.move(event));
        this.canvas.addEventListener("pointerup", (event) => this.release(event));
        this.canvas.addEventListener("pointerleave", () => this.on.hover(null));
        this.canvas.addEventListener("keydown", (event) => this.key(event));
        this.canvas.addEventListener("focus", () => this.draw());
        this.canvas.addEventListener("blur", () => this.draw());
        const jump = (event) => {
            if (event.buttons === 1) {
                const box = this.overview.getBoundingClientRect();
                const share = (event.clientX - box.left - HEAT_LEFT) / (box.width - HEAT_LEFT);

                this.scroller.scrollLeft = share * this.columns * this.cellWidth - this.width / 2;
            }
        };

        this.overview.addEventListener("pointerdown", jump);
        this.overview.addEventListener("pointermove", jump);
        new ResizeObserver(() => this.resize()).observe(host);
    }

    // The hottest cells share one colour, so that a single spike does not make all others pale.
    scaleEnd() {
        const filled = Float64Array.from(this.heat.sums.filter((n) => n > 0)).sort();

        return filled.length > 0 ? Math.max(1, filled[Math.floor((filled.length - 1) * 0.985)]) : 1;
    }

    resize() {
        const ratio = window.devicePixelRatio || 1, host = this.scroller.parentElement;
        const space = host.clientWidth - HEAT_LEFT;

        if (host.clientWidth === 0)
            return;
        this.cellWidth = Math.min(36, Math.max(4, space / this.columns));
        this.cellHeight = Math.min(26, Math.max(3, Math.round(230 / this.heat.rows)));
        this.width = host.clientWidth;
        this.height = HEAT_TOP + this.heat.rows * this.cellHeight + HEAT_BOTTOM;
        this.scrolls = this.columns * this.cellWidth > space + 1;
        this.overview.hidden = !this.scrolls;
        this.spacer.style.width = HEAT_LEFT + Math.floor(this.columns * this.cellWidth) + "px";
        this.spacer.style.height = this.height + "px";
        for (const [canvas, width, height] of [[this.canvas, this.width, this.height], [this.overview, this.width, OVERVIEW]]) {
            canvas.style.width = width + "px";
            canvas.style.height = height + "px";
            canvas.width = Math.round(width * ratio);
            canvas.height = Math.round(height * ratio);
            canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
        }
        this.draw();
    }

    draw() {
        if (!this.asked && this.cellWidth)
            this.asked = requestAnimationFrame(() => {
                this.asked = 0;
                this.paint();
                if (this.scrolls)
                    this.paintOverview();
            });
    }

    colors() {
        const dark = this.palette.dark;

        return {
            text: dark ? "#a5a29c" : "#6e675f", line: dark ? "#34353c" : "#e4dfd7", empty: dark ? "#1f2025" : "#f6f3ee",
            range: dark ? "#ffffff" : "#17130f", base: dark ? "#6db3ff" : "#1465c0",
        };
    }

    columnLeft(column) {
        return Math.round(HEAT_LEFT + column * this.cellWidth - this.scroller.scrollLeft);
    }

    paint() {
        const c = this.canvas.getContext("2d"), { heat, cellWidth, cellHeight } = this, colors = this.colors();
        const first = Math.floor(this.scroller.scrollLeft / cellWidth);
        const last = Math.min(this.columns, first + Math.ceil((this.width - HEAT_LEFT) / cellWidth) + 1);
        const gap = cellWidth >= 6 && cellHeight >= 5 ? 1 : 0, scale = [];

        for (let i = 0; i <= 64; i++)
            scale.push(css(this.palette.ofHeat(i / 64)));
        c.clearRect(0, 0, this.width, this.height);
        for (let column = first; column < last; column++) {
            const left = this.columnLeft(column), width = this.columnLeft(column + 1) - left;

            for (let row = 0; row < heat.rows; row++) {
                const bucket = column * heat.rows + row, n = bucket < heat.n ? heat.sums[bucket] : -1;

                if (n < 0)
                    continue;
                c.fillStyle = n === 0 ? colors.empty : scale[Math.round(64 * Math.min(1, n / this.most))];
                c.fillRect(left, this.rowTop(row), width - gap, cellHeight - gap);
            }
        }
        if (this.base)
            this.paintRange(c, this.base, colors.base, [4, 3]);
        if (this.range)
            this.paintRange(c, this.range, colors.range, []);
        if (this.dragged)
            this.paintRange(c, this.dragged, this.comparing ? colors.base : colors.range, []);
        if (document.activeElement === this.canvas) {
            c.strokeStyle = "#f08c00";
            c.lineWidth = 2;
            c.strokeRect(this.columnLeft(Math.floor(this.cursor / heat.rows)) - 1,
                         this.rowTop(this.cursor % heat.rows) - 1, cellWidth + 1, cellHeight + 1);
        }
        this.paintAxes(c, colors, first, last);
    }

    rowTop(row) {
        return HEAT_TOP + (this.heat.rows - 1 - row) * this.cellHeight;
    }

    // The outline of a range of time, which goes up one column after the other.
    paintRange(c, [from, to], color, dash) {
        const { heat } = this, begin = Math.floor(from / heat.rows), end = Math.floor((to - 1) / heat.rows);
        const path = new Path2D();

        for (let column = begin; column <= end; column++) {
            const low = column === begin ? from % heat.rows : 0, high = column === end ? (to - 1) % heat.rows : heat.rows - 1;

            path.rect(this.columnLeft(column), this.rowTop(high), this.columnLeft(column + 1) - this.columnLeft(column), (high - low + 1) * this.cellHeight);
        }
        c.save();
        c.fillStyle = color;
        c.globalAlpha = 0.16;
        c.fill(path);
        c.restore();
        const x0 = this.columnLeft(begin) + 0.5, x1 = this.columnLeft(end + 1) - 0.5;
        const afterFirst = this.columnLeft(begin + 1) + 0.5, beforeLast = this.columnLeft(end) - 0.5;
        const top = this.rowTop(heat.rows - 1) + 0.5, bottom = this.rowTop(0) + this.cellHeight - 0.5;
        const yFrom = this.rowTop(from % heat.rows) + this.cellHeight - 0.5, yTo = this.rowTop((to - 1) % heat.rows) + 0.5;
        const outline = begin === end ? [[x0, yFrom], [x0, yTo], [x1, yTo], [x1, yFrom]]
            : [[x0, yFrom], [x0, top], [beforeLast, top], [beforeLast, yTo], [x1, yTo], [x1, bottom],
               [afterFirst, bottom], [afterFirst, yFrom]];

        c.save();
        c.strokeStyle = color;
        c.lineWidth = 2;
        c.setLineDash(dash);
        c.beginPath();
        outline.forEach(([x, y], i) => (i ? c.lineTo(x, y) : c.moveTo(x, y)));
        c.closePath();
        c.stroke();
        c.restore();
    }

    paintAxes(c, colors, first, last) {
        const { heat } = this, bottom = HEAT_TOP + heat.rows * this.cellHeight;
        const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600], step = steps.find((s) => s * this.cellWidth >= 76) || 600;

        c.clearRect(0, 0, HEAT_LEFT - 1, this.height);
        c.font = HEAT_LABEL;
        c.fillStyle = colors.text;
        c.textBaseline = "middle";
        c.textAlign = "right";
        for (const share of heat.rows > 1 ? [0, 0.25, 0.5, 0.75, 1] : [])
            c.fillText(`${Math.round(1000 * share)} ms`, HEAT_LEFT - 8,
                       Math.min(bottom - 5, Math.max(HEAT_TOP + 5, bottom - share * heat.rows * this.cellHeight)));
        c.textAlign = "left";
        for (let column = Math.ceil(first / step) * step; column < last; column += step) {
            const x = this.columnLeft(column);

            if (x < HEAT_LEFT - 1)
                continue;
            c.fillRect(x, bottom + 2, 1, 4);
            if (x + 56 < this.width)
                c.fillText(this.timeOf(column * heat.rows, false), x + 4, bottom + 12);
        }
    }

    paintOverview() {
        const c = this.overview.getContext("2d"), { heat } = this, colors = this.colors();
        const space = this.width - HEAT_LEFT, bars = new Float64Array(Math.max(1, Math.floor(space / 2)));
        let most = 1;

        for (let i = 0; i < heat.n; i++)
            bars[Math.min(bars.length - 1, Math.floor(i * bars.length / (this.columns * heat.rows)))] += heat.sums[i];
        for (const bar of bars)
            most = Math.max(most, bar);
        c.clearRect(0, 0, this.width, OVERVIEW);
        bars.forEach((bar, i) => {
            const height = bar > 0 ? Math.max(1, bar / most * (OVERVIEW - 8)) : 0;

            c.fillStyle = css(this.palette.ofHeat(0.2 + 0.6 * bar / most));
            c.fillRect(HEAT_LEFT + i * 2, OVERVIEW - 4 - height, 2, height);
        });
        const scale = space / (this.columns * this.cellWidth);

        c.strokeStyle = colors.range;
        c.lineWidth = 1.5;
        c.strokeRect(HEAT_LEFT + this.scroller.scrollLeft * scale + 0.75, 1, Math.min(space, space * scale) - 1.5, OVERVIEW - 2);
    }

    // The time of a bucket: of the day, or since the start.
    timeOf(bucket, withFraction) {
        const ms = bucket * this.heat.bucketMs;

        if (this.heat.realMs !== undefined)
            return formatClock(this.heat.realMs + this.heat.zoneMs + ms, withFraction);
        return withFraction ? (ms / 1000).toFixed(3) + " s" : Math.round(ms / 1000) + " s";
    }

    textOf([from, to]) {
        return `${this.timeOf(from, true)} – ${this.timeOf(to, true)}`;
    }

    bucketAt(event) {
        const { heat } = this, box = this.canvas.getBoundingClientRect();
        const column = Math.floor((event.clientX - box.left - HEAT_LEFT + this.scroller.scrollLeft) / this.cellWidth);
        const row = heat.rows - 1 - Math.floor((event.clientY - box.top - HEAT_TOP) / this.cellHeight);

        return Math.min(heat.n - 1, Math.max(0, Math.min(this.columns - 1, Math.max(0, column)) * heat.rows +
            Math.min(heat.rows - 1, Math.max(0, row))));
    }

    spanOf(a, b) {
        return [Math.min(a, b), Math.max(a, b) + 1];
    }

    press(event) {
        if (event.button !== 0)
            return;
        this.canvas.setPointerCapture(event.pointerId);
        this.anchor = this.cursor = this.bucketAt(event);
        this.dragged = this.spanOf(this.anchor, this.cursor);
        this.draw();
    }

    move(event) {
        const bucket = this.bucketAt(event);

        if (this.dragged) {
            this.cursor = bucket;
            this.dragged = this.spanOf(this.anchor, this.cursor);
            this.draw();
        }
        this.on.hover(this.dragged || [bucket, bucket + 1], event);
    }

    release() {
        const range = this.dragged;

        this.dragged = null;
        if (range)
            this.choose(range);
    }

    choose(range) {
        this.on.range(range, this.comparing);
        this.draw();
    }

    setRanges(range, base) {
        this.range = range;
        this.base = base;
        this.draw();
    }

    key(event) {
        const { heat } = this, steps = { ArrowUp: 1, ArrowDown: -1, ArrowRight: heat.rows, ArrowLeft: -heat.rows };

        if (event.ctrlKey || event.altKey || event.metaKey)
            return;
        if (steps[event.key]) {
            this.cursor = Math.min(heat.n - 1, Math.max(0, this.cursor + steps[event.key]));
            if (event.shiftKey)
                this.choose(this.spanOf(this.anchor, this.cursor));
            else
                this.anchor = this.cursor;
            this.on.hover(null);
            this.on.say(`${this.timeOf(this.cursor, true)}, ${formatCount(heat.sums[this.cursor])} samples`);
            this.reveal();
            this.draw();
        } else if (event.key === "Enter")
            this.choose(this.spanOf(this.anchor, this.cursor));
        else
            return;
        event.preventDefault();
    }

    reveal() {
        const left = this.columnLeft(Math.floor(this.cursor / this.heat.rows));

        if (left < HEAT_LEFT)
            this.scroller.scrollLeft += left - HEAT_LEFT;
        else if (left + this.cellWidth > this.width)
            this.scroller.scrollLeft += left + this.cellWidth - this.width;
    }
}
