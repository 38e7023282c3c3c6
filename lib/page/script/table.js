// SPDX-License-Identifier: LGPL-2.1-or-later
// The table beside the picture: one row for each function or label, sorted by a click on a heading.

const TABLE_ROWS = 100;

class FrameTable {
    // `on.choose(frame)` is called for a row, `on.sandwich(frame)` for its button.
    constructor(host, model, palette, on) {
        this.model = model;
        this.palette = palette;
        this.on = on;
        this.body = element("tbody");
        this.head = element("tr");
        this.caption = element("caption", { class: "hidden" });
        this.table = element("table", { class: "frames" }, this.caption, element("thead", {}, this.head), this.body);
        this.tabs = element("div", { class: "tabs", role: "tablist", "aria-label": "Rows of the table" });
        this.more = element("button", { class: "quiet more", type: "button", onclick: () => this.showMore() });
        this.scroller = element("div", { class: "table-scroller", tabindex: "-1" }, this.table, this.more);
        host.append(this.tabs, this.scroller);
        this.by = "self";
        this.upwards = false;
        this.kind = "function";
        this.shown = TABLE_ROWS;
    }

    columns() {
        const share = (name, sums, total) => ({
            name, text: (f) => formatShort(sums[f], this.model.unit), share: (f) => sums[f] / (total || 1),
            value: (f) => sums[f],
        });
        const { sums, total, before } = this;
        const columns = [];

        if (sums.before) {
            columns.push({
                name: "change", title: "Change",
                value: (f) => sums.self[f] / (total || 1) - sums.selfBefore[f] / (before || 1),
                text: (f) => formatSignedShare(sums.self[f] / (total || 1) - sums.selfBefore[f] / (before || 1)),
                signed: true,
            });
            columns.push({ title: "Before", ...share("before", sums.selfBefore, before) });
        }
        columns.push({ title: "Self", ...share("self", sums.self, total) });
        columns.push({ title: "Total", ...share("total", sums.total, total) });
        return columns;
    }

    setSums(sums, total, before) {
        const wasCompared = Boolean(this.sums && this.sums.before);

        this.sums = sums;
        this.total = total;
        this.before = before;
        if (!wasCompared && sums.before)
            this.by = "change";
        else if (!sums.before && (this.by === "change" || this.by === "before"))
            this.by = "self";
        this.kinds = ["function"];
        for (const kind of LABEL_KINDS) {
            const number = this.model.kindNumber.get(kind);

            if (this.model.frames.kind.includes(number))
                this.kinds.push(kind);
        }
        this.fillTabs();
        this.fill();
    }

    setMatches(matches) {
        this.matches = matches;
        this.shown = TABLE_ROWS;
        this.fill();
    }

    fillTabs() {
        const titles = { function: "Functions", process: "Processes", cpu: "CPUs" };

        this.tabs.hidden = this.kinds.length < 2;
        this.tabs.replaceChildren(...this.kinds.map((kind) => element("button", {
            type: "button", role: "tab", "aria-selected": String(kind === this.kind),
            onclick: () => {
                this.kind = kind;
                if (kind !== "function" && this.by === "self")
                    this.by = "total";
                this.shown = TABLE_ROWS;
                this.fillTabs();
                this.fill();
            },
        }, titles[kind] || kind[0].toUpperCase() + kind.slice(1) + "s")));
    }

    rows(columns) {
        const { sums, model } = this, rows = [];
        const column = columns.find((c) => c.name === this.by);

        for (let f = 0; f < model.frames.n; f++) {
            const kind = kindOf(model, f), wanted = this.kind === "function" ? !LABEL_KINDS.has(kind) : kind === this.kind;

            if (wanted && (sums.total[f] > 0 || (sums.before && sums.before[f] > 0)) &&
                (!this.matches || this.matches[f]))
                rows.push(f);
        }
        const sign = this.upwards ? 1 : -1;
        const size = column && column.signed ? (f) => Math.abs(column.value(f)) : column && column.value;

        if (size)
            rows.sort((a, b) => sign * (size(a) - size(b)) || sums.total[b] - sums.total[a] || a - b);
        else
            rows.sort((a, b) => (nameOf(model, a) < nameOf(model, b) ? sign : -sign));
        return rows;
    }

    heading(name, title, numeric) {
        const sorted = this.by === name;
        const sort = () => {
            this.upwards = sorted && !this.upwards;
            this.by = name;
            this.fill();
            this.head.querySelector(`[data-column="${name}"]`).focus();
        };

        return element("th", {
            scope: "col", class: numeric ? "number" : "name",
            "aria-sort": !sorted ? "none" : this.upwards ? "ascending" : "descending",
        }, element("button", { type: "button", "data-column": name, onclick: sort }, title,
            element("span", { class: "arrow", "aria-hidden": "true" }, !sorted ? "" : this.upwards ? "▲" : "▼")));
    }

    fill() {
        if (!this.sums)
            return;
        const columns = this.columns(), rows = this.rows(columns);

        this.caption.textContent = `${formatCount(rows.length)} rows with own and total weight`;
        this.head.replaceChildren(
            this.heading("name", this.kind === "function" ? "Function" : "Name", false),
            ...columns.map((c) => this.heading(c.name, c.title, true)));
        this.body.replaceChildren(...rows.slice(0, this.shown).map((f) => this.row(f, columns)));
        this.more.hidden = rows.length <= this.shown;
        this.more.textContent = `Show ${formatCount(Math.min(10 * TABLE_ROWS, rows.length - this.shown))} more of ${formatCount(rows.length)}`;
        if (rows.length === 0)
            this.body.append(element("tr", {}, element("td", { colspan: String(columns.length + 1), class: "none" },
                "No function matches.")));
    }

    row(f, columns) {
        const { model } = this, dot = element("span", { class: "dot", "aria-hidden": "true" });
        const name = nameOf(model, f), dso = dsoOf(model, f), kind = kindOf(model, f);
        const choose = element("button", { type: "button", class: "name", title: name, onclick: () => this.on.choose(f) }, name);
        const where = kind === "inlined" ? `${dso} · inlined` : dso;
        const cells = columns.map((c) => {
            const cell = element("td", { class: "number" });

            if (c.signed) {
                const value = c.value(f), scale = this.sums.allSamples / (this.sums.allSamplesBefore || 1);
                const a = this.sums.samples[f], b = this.sums.samplesBefore[f];
                const sure = Math.abs(a - b * scale) > 2 * Math.sqrt(a + b * scale * scale);

                cell.title = sure ? "" : "This may be noise.";
                cell.classList.add(!sure ? "same" : value > 0 ? "more-than" : value < 0 ? "less-than" : "same");
                cell.append(element("b", {}, c.text(f)));
                return cell;
            }
            const bar = element("i", { "aria-hidden": "true" });

            bar.style.width = (100 * c.share(f)).toFixed(2) + "%";
            cell.append(element("b", {}, formatShare(c.share(f), 1)), element("small", {}, c.text(f)), bar);
            return cell;
        });

        dot.style.background = css(this.palette.ofFrame(f, this.colorBy || "kind"));
        return element("tr", { "data-frame": String(f), class: f === this.chosen ? "chosen" : "" },
            element("th", { scope: "row", class: "name" }, dot, choose, element("small", {}, where),
                LABEL_KINDS.has(kind) ? "" : element("button", {
                    type: "button", class: "quiet sandwich", title: "Callers and callees of this function",
                    "aria-label": `Callers and callees of ${name}`, onclick: () => this.on.sandwich(f),
                }, "⇅")),
            ...cells);
    }

    setChosen(frame) {
        this.chosen = frame;
        for (const row of this.body.children)
            row.classList.toggle("chosen", Number(row.dataset.frame) === frame);
    }

    showMore() {
        this.shown += 10 * TABLE_ROWS;
        this.fill();
    }
}
