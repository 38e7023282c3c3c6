// SPDX-License-Identifier: LGPL-2.1-or-later
// A flame graph on a canvas: draws a laid out tree, zooms, and follows mouse and keyboard. It scrolls,
// and only the rows in sight are drawn.

const ROW = 20, TEXT_LEAST = 24, ZOOM_MS = 180;
// Boxes narrower than this are pixels of one image for all rows, which costs less than a box each.
const BOX_LEAST = 3, SHARED_ALPHA = 0x8cffffff;
const FONT = '11.5px "Inter", system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';

class Pane {
    // `host` is an empty element. `on` has hover(node, event), select(node), zoom(node), and color(tree,
    // node), which returns {fill, faded}.
    constructor(host, label, palette, model, on) {
        this.host = host;
        this.palette = palette;
        this.model = model;
        this.on = on;
        this.canvas = element("canvas", {
            tabindex: "0", role: "application", "aria-roledescription": "flame graph", "aria-label": label,
            "aria-describedby": "announcement",
        });
        this.spacer = element("div", { class: "spacer" }, this.canvas);
        this.scroller = element("div", { class: "scroller" }, this.spacer);
        host.append(this.scroller);
        this.context = this.canvas.getContext("2d");
        this.widths = new Map();
        this.texts = [];
        this.hovered = this.selected = -1;
        this.zoomed = 0;
        this.flame = false;
        this.base = 0; // the first level that is drawn
        this.from = 0;
        this.to = 1;
        this.scroller.addEventListener("scroll", () => this.draw(), { passive: true });
        this.canvas.addEventListener("mousemove", (event) => this.point(event));
        this.canvas.addEventListener("mouseleave", (event) => this.setHovered(-1, event));
        this.canvas.addEventListener("click", (event) => this.click(event));
        this.canvas.addEventListener("keydown", (event) => this.key(event));
        this.canvas.addEventListener("focus", () => this.draw());
        this.canvas.addEventListener("blur", () => this.draw());
        new ResizeObserver(() => this.resize()).observe(this.scroller);
    }

    setLayout(layout, flame) {
        this.layout = layout;
        this.flame = flame;
        this.hovered = this.selected = -1;
        this.zoomed = 0;
        this.from = 0;
        this.to = layout.tree.total[0] || 1;
        this.resize();
        this.scroller.scrollTop = flame ? this.scroller.scrollHeight : 0;
        this.draw();
    }

    resize() {
        const ratio = window.devicePixelRatio || 1;

        if (!this.layout)
            return;
        // What was at the lower edge of a flame stays there.
        const below = this.scroller.scrollHeight - this.scroller.scrollTop - (this.height || 0);

        this.width = this.scroller.clientWidth;
        this.height = this.scroller.clientHeight;
        this.rows = this.layout.levels.length - this.base;
        this.spacer.style.height = Math.max(this.height, this.rows * ROW + 8) + "px";
        this.canvas.style.width = this.width + "px";
        this.canvas.style.height = this.height + "px";
        this.canvas.width = Math.max(1, Math.round(this.width * ratio));
        this.canvas.height = Math.max(1, Math.round(this.height * ratio));
        this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
        if (this.flame)
            this.scroller.scrollTop = this.scroller.scrollHeight - this.height - below;
        this.draw();
    }

    // The upper edge of a level on the canvas.
    rowTop(level) {
        const total = Math.max(this.height, this.rows * ROW + 8), top = this.scroller.scrollTop;

        level -= this.base;
        return this.flame ? total - 4 - (level + 1) * ROW - top : 4 + level * ROW - top;
    }

    levelAt(y) {
        const total = Math.max(this.height, this.rows * ROW + 8), place = y + this.scroller.scrollTop;

        return this.base + Math.floor((this.flame ? total - 4 - place : place - 4) / ROW);
    }

    // The first of a level, at `low` or behind it, whose right edge is behind `x`. It is mostly near.
    firstBehind(number, x, low) {
        const edges = this.layout.edges[number];
        let high = low, step = 1;

        while (high < edges.length && edges[high] <= x) {
            low = high + 1;
            high += step;
            step *= 2;
        }
        high = Math.min(high, edges.length);
        while (low < high) {
            const middle = low + high >> 1;

            if (edges[middle] <= x)
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }

    draw() {
        if (this.layout && !this.frameAsked)
            this.frameAsked = requestAnimationFrame(() => {
                this.frameAsked = 0;
                this.paint();
            });
    }

    paint() {
        const c = this.context;

        this.step();
        c.clearRect(0, 0, this.width, this.height);
        c.font = FONT;
        c.textBaseline = "middle";
        const ends = [this.levelAt(0), this.levelAt(this.height)].sort((a, b) => a - b);
        const first = Math.max(this.base, ends[0]), last = Math.min(this.base + this.rows - 1, ends[1]);

        if (last >= first && this.width > 0) {
            const image = this.stripImage(last - first + 1), words = new Uint32Array(image.data.buffer);

            for (let level = first; level <= last; level++)
                this.paintLevel(level, words.subarray((level - first) * image.width, (level - first + 1) * image.width));
            this.strips.getContext("2d").putImageData(image, 0, 0);
            c.imageSmoothingEnabled = false;
            for (let level = first; level <= last; level++)
                c.drawImage(this.strips, 0, level - first, image.width, 1, 0, this.rowTop(level), image.width, ROW - 1);
            for (const box of this.texts)
                this.paintText(...box);
            this.texts.length = 0;
        }
        this.outline(this.hovered, this.palette.dark ? "rgba(255,255,255,.85)" : "rgba(0,0,0,.75)", 1);
        if (this.selected >= 0)
            this.outline(this.selected, this.palette.dark ? "#ffb45e" : "#c2410c", 2);
        if (this.animation)
            this.draw();
    }

    // An empty image with a row of pixels for each level in sight.
    stripImage(rows) {
        const width = Math.ceil(this.width);

        this.strips = this.strips || document.createElement("canvas");
        if (this.strips.width !== width || this.strips.height < rows) {
            this.strips.width = width;
            this.strips.height = rows;
        }
        return new ImageData(width, this.strips.height);
    }

    paintLevel(number, strip) {
        const { x, tree } = this.layout, level = this.layout.levels[number];
        const scale = this.width / (this.to - this.from), top = this.rowTop(number);
        let i = this.firstBehind(number, this.from, 0);

        while (i < level.length) {
            const node = level[i], left = (x[node] - this.from) * scale, width = tree.total[node] * scale;

            if (left >= this.width)
                break;
            if (width >= BOX_LEAST) {
                this.paintBox(node, left, top, width);
                i++;
            } else if (width >= 1) {
                // The last pixel stays free, as the gap between boxes.
                const start = Math.max(0, Math.round(left)), end = Math.round(left + width) - (width > 1.7 ? 1 : 0);

                strip.fill(this.on.color(tree, node).word, start, Math.max(start + 1, end));
                i++;
            } else {
                // Boxes narrower than a pixel share one, in the colour of the first.
                const pixel = Math.max(0, Math.floor(left));

                if (strip[pixel] === 0)
                    strip[pixel] = (this.on.color(tree, node).word & SHARED_ALPHA) >>> 0;
                i = this.firstBehind(number, this.from + (Math.floor(left) + 1) / scale, i + 1);
            }
        }
    }

    paintBox(node, left, top, width) {
        const c = this.context, { tree } = this.layout, color = this.on.color(tree, node);
        const start = Math.max(0, left), end = Math.min(this.width, left + width);
        const gap = end - start > 3 ? 1 : end - start > 1.5 ? 0.5 : 0;
        const above = this.zoomed > 0 && node < this.zoomed && tree.end[node] > this.zoomed;

        c.fillStyle = color.fill;
        c.globalAlpha = above ? 0.55 : 1;
        if (end - start > 7 && c.roundRect) {
            c.beginPath();
            c.roundRect(start, top, end - start - gap, ROW - 1, 2.5);
            c.fill();
        } else
            c.fillRect(start, top, end - start - gap, ROW - 1);
        c.globalAlpha = 1;
        if (end - start >= TEXT_LEAST) {
            this.texts.push([nameOf(this.model, tree.frame[node]), start + 5, top + ROW / 2, end - start - 10,
                             color.faded ? this.palette.inkFaded : this.palette.ink]);
        }
    }

    textWidth(text) {
        let width = this.widths.get(text);

        if (width === undefined) {
            width = this.context.measureText(text).width;
            this.widths.set(text, width);
        }
        return width;
    }

    paintText(text, x, y, space, ink) {
        const whole = this.textWidth(text.length > 400 ? text = text.slice(0, 400) : text);

        if (whole > space) {
            let n = Math.floor(text.length * space / whole);

            while (n > 0 && this.context.measureText(text.slice(0, n) + "…").width > space)
                n -= Math.max(1, n >> 4);
            if (n < 2)
                return;
            text = text.slice(0, n) + "…";
        }
        this.context.fillStyle = ink;
        this.context.fillText(text, x, y);
    }

    outline(node, style, thickness) {
        if (node < 0 || node >= this.layout.tree.n)
            return;
        const c = this.context, scale = this.width / (this.to - this.from), { x, tree } = this.layout;
        const left = Math.max(1, (x[node] - this.from) * scale);
        const right = Math.min(this.width - 1, (x[node] + tree.total[node] - this.from) * scale);

        if (right < left)
            return;
        c.strokeStyle = style;
        c.lineWidth = thickness;
        c.strokeRect(left, this.rowTop(tree.depth[node]), Math.max(1, right - left - 1), ROW - 1);
    }

    nodeAt(event) {
        const box = this.canvas.getBoundingClientRect();
        const number = this.layout ? this.levelAt(event.clientY - box.top) : -1;
        const level = number >= this.base && this.layout.levels[number];

        if (!level)
            return -1;
        const at = this.from + (event.clientX - box.left) / this.width * (this.to - this.from);
        const i = this.firstBehind(number, at, 0);

        return i < level.length && this.layout.x[level[i]] <= at ? level[i] : -1;
    }

    point(event) {
        this.setHovered(this.nodeAt(event), event);
    }

    setHovered(node, event) {
        const changed = node !== this.hovered;

        this.hovered = node;
        this.canvas.style.cursor = node >= 0 ? "pointer" : "default";
        this.on.hover(node, event);
        if (changed)
            this.draw();
    }

    click(event) {
        const node = this.nodeAt(event);

        if (node < 0)
            return;
        this.select(node);
        this.zoom(node);
    }

    select(node) {
        this.selected = node;
        this.on.select(node);
        this.draw();
    }

    zoom(node, atOnce) {
        const { x, tree } = this.layout;
        const goal = { from: x[node], to: x[node] + (tree.total[node] || 1) };
        const still = atOnce || matchMedia("(prefers-reduced-motion: reduce)").matches;

        this.zoomed = node;
        this.animation = still ? null : { ...goal, start: performance.now(), oldFrom: this.from, oldTo: this.to };
        if (still)
            Object.assign(this, goal);
        this.reveal(node);
        this.on.zoom(node);
        this.draw();
    }

    step() {
        const a = this.animation;

        if (!a)
            return;
        const t = Math.min(1, (performance.now() - a.start) / ZOOM_MS), eased = 1 - Math.pow(1 - t, 3);

        this.from = a.oldFrom + (a.from - a.oldFrom) * eased;
        this.to = a.oldTo + (a.to - a.oldTo) * eased;
        if (t >= 1)
            this.animation = null;
    }

    // Scrolls so that a node's row is in sight.
    reveal(node) {
        const top = this.rowTop(this.layout.tree.depth[node]);

        if (top < ROW)
            this.scroller.scrollTop += top - 2 * ROW;
        else if (top > this.height - 2 * ROW)
            this.scroller.scrollTop += top - this.height + 3 * ROW;
    }

    // The next node on the same level that can be seen: by -1 or 1.
    beside(node, by) {
        const level = this.layout.levels[this.layout.tree.depth[node]];
        const i = level.indexOf(node) + by;

        return i >= 0 && i < level.length ? level[i] : node;
    }

    // The widest child.
    childOf(node) {
        const { tree } = this.layout;
        let best = node;

        for (let c = node + 1; c < tree.end[node]; c = tree.end[c])
            if (best === node || tree.total[c] > tree.total[best])
                best = c;
        return best;
    }

    key(event) {
        const { tree } = this.layout, now = this.selected >= 0 ? this.selected : this.zoomed;
        const outward = () => tree.parent[now] >= 0 ? tree.parent[now] : now;
        const moves = {
            ArrowLeft: () => this.beside(now, -1),
            ArrowRight: () => this.beside(now, 1),
            ArrowUp: () => this.flame ? this.childOf(now) : outward(),
            ArrowDown: () => this.flame ? outward() : this.childOf(now),
            Home: () => 0,
        };

        if (event.ctrlKey || event.altKey || event.metaKey)
            return;
        if (moves[event.key]) {
            const node = this.selected >= 0 ? moves[event.key]() : this.zoomed;

            this.reveal(node);
            this.select(node);
        } else if (event.key === "Enter" && now >= 0)
            this.zoom(now);
        else
            return;
        event.preventDefault();
    }

    // Names from the outermost caller to `node`, or the other way round where callers are above.
    pathOf(node) {
        const { tree } = this.layout, path = [];

        for (let i = node; i >= 0; i = tree.parent[i])
            if (tree.frame[i] >= 0)
                path.push(tree.frame[i]);
        return path.reverse();
    }
}
