"use strict";
// Draws the groups and their rows from the page's own data, on demand: a page of 100,000 rows holds few elements.
// All text goes in as text nodes; nothing is ever parsed as HTML.
(() => {
  const SHOWN = 100;
  const LANES = 40;
  const PRINTED = 2000;
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const byId = (id) => document.getElementById(id);
  const data = read("data");
  const at = Object.fromEntries(data.columns.map((name, i) => [name, i]));
  const WORDS = new Set(["source_topic", "target_topic", "decision", "method", "grade", "reason", "lower_kind",
    "equality", "why", "source_metadata", "target_prior_metadata", "target_metadata", "sentence", "status", "seen", "told", "standing",
    "verified"]);

  function make(tag, attributes, ...inside) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value !== null && value !== undefined) element.setAttribute(name, value);
    }
    element.append(...inside);
    return element;
  }

  // The rows of one group, as objects

  const column = (columns, name, i) => {
    const values = columns[at[name]];
    return values.length === 1 ? values[0] : values[i];
  };

  const cell = (columns, name, i) => {
    const value = column(columns, name, i);
    return WORDS.has(name) ? data.words[value] : value;
  };

  function rowAt(columns, i) {
    const row = {};
    for (const name of data.columns) row[name] = cell(columns, name, i);
    const numbers = row.sentence_numbers;
    row.sentence = row.sentence.split("\u0001").reduce((text, part, k) => text + numbers[k - 1] + part);
    return row;
  }

  function rowsOf(index) {
    const columns = read("g" + index);
    return Array.from({ length: data.groups[index].rows }, (_, i) => rowAt(columns, i));
  }

  // Calls `seen(row number)` for the rows of one topic: it decodes nothing but where they stand
  function onTopic(index, columns, topic, seen) {
    for (let i = 0; i < data.groups[index].rows; i += 1) if (column(columns, "source_topic", i) === topic) seen(i);
  }

  const grouped = (n) => (n === null ? "" : Number(n).toLocaleString("en-US"));
  const plain = (n) => (n === null || n === "" ? "-" : String(n));
  const many = (n, noun) => `${grouped(n)} ${noun}${n === 1 ? "" : "s"}`;
  function duration(seconds) {
    if (seconds === null) return "";
    const [unit, size] = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]].find(([, s]) => seconds >= 2 * s || s === 1);
    return `${Math.floor(seconds / size)} ${unit}`;
  }
  function rereadsOf(row) {
    if (row.rereads_at_most !== null) return (row.grade === "exact" ? "" : "<=") + row.rereads_at_most;
    return row.rereads_estimate === null ? "-" : "~" + row.rereads_estimate;
  }

  // The list of groups

  const COLUMNS = [
    { key: "name", title: "Group", kind: "group", text: (g) => g.name },
    { key: "word", title: "Decision", text: (g) => g.word },
    { key: "rows", title: "Rows", kind: "number wide", text: (g) => grouped(g.rows) },
    { key: "lag", title: "Lag", kind: "number", text: (g) => (g.lag === null ? "unknown" : grouped(g.lag)) },
    { key: "rereads", title: "Re-reads", kind: "number",
      text: (g) => (g.rereads === null ? "unknown" : g.sign + grouped(g.rereads)) },
    ...(data.checkpoints ? [{ key: "mm2", title: "MM2 more", kind: "number wide", text: (g) => grouped(g.mm2) }] : []),
    { key: "grade", title: "Grades", kind: "wide", text: gradesOf, by: (g) => -(g.grades[2] + g.grades[3]) / g.rows },
    ...(data.activity ? [{ key: "idle", title: "Idle for", kind: "number wide", text: (g) => duration(g.idle) }] : []),
    { key: "state", title: data.after ? "Afterwards" : "State", kind: "wide",
      text: (g) => (data.after ? g.results : g.states) },
  ];
  const KINDS = [
    ["all", "all groups", () => true],
    ["SET", "to write", (g) => g.word === "SET"],
    ["BLOCK", "blocked", (g) => g.word === "BLOCK"],
    ["KEEP", "left as they are", (g) => g.word === "KEEP" || g.word === "SKIP"],
    ["risk", "may skip or rewind", (g) => g.risk],
    ["unproven", "not proven by records", (g) => g.grades[2] > 0],
    ...(data.after ? [["bad", "not as planned", (g) => g.bad]] : []),
  ];
  const state = { query: "", which: "all", key: "", down: false, shown: SHOWN, found: [], open: new Set() };
  const searched = data.groups.map((g) => [g.name, ...g.topics.map((t) => data.words[t])].join("\n").toLowerCase());

  function gradesOf(group) {
    const names = ["exact", "bounded", "estimated", "without a grade"];
    return group.grades.map((n, i) => (n ? `${grouped(n)} ${names[i]}` : "")).filter(Boolean).join(", ");
  }

  function find() {
    const query = state.query.trim().toLowerCase();
    const [, , fits] = KINDS.find(([kind]) => kind === state.which);
    state.found = data.groups.map((_, i) => i).filter((i) => searched[i].includes(query) && fits(data.groups[i]));
    const column = COLUMNS.find((c) => c.key === state.key);
    if (!column) return;
    const value = (i) => {
      const group = data.groups[i];
      if (column.by) return column.by(group);
      return column.kind && column.kind.includes("number") ? group[column.key] : column.text(group).toLowerCase();
    };
    const sign = state.down ? -1 : 1;
    state.found.sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === y) return a - b;
      if (x === null || y === null) return x === null ? 1 : -1; // unknown stands last either way
      return x < y ? -sign : sign;
    });
  }

  function draw() {
    find();
    const body = byId("list").tBodies[0];
    body.replaceChildren(...state.found.slice(0, state.shown).flatMap(groupRows));
    const rows = state.found.reduce((sum, i) => sum + data.groups[i].rows, 0);
    byId("found").textContent = `${many(state.found.length, "group")} of ${grouped(data.groups.length)}, ${many(rows, "row")}`;
    const left = state.found.length - state.shown;
    byId("more").hidden = left <= 0;
    byId("more").textContent = `Show ${grouped(Math.min(left, 5 * SHOWN))} more of ${grouped(left)}`;
    for (const head of byId("list").tHead.rows[0].cells) {
      if (head.dataset.key === state.key) head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
  }

  function groupRows(index) {
    const group = data.groups[index];
    const open = state.open.has(index);
    const fold = make("button", { type: "button", class: "fold", "aria-expanded": open }, group.name);
    fold.addEventListener("click", () => {
      if (!state.open.delete(index)) state.open.add(index);
      const now = state.open.has(index);
      fold.setAttribute("aria-expanded", now);
      if (now) line.after(inside(index));
      else line.nextElementSibling.remove();
    });
    const line = make("tr", { "data-group": index }, ...COLUMNS.map((c, i) => {
      const kind = c.key === "word" ? `word ${group.word}` : c.key === "state" && group.bad ? "wide wrong" : c.kind;
      return make("td", { class: kind }, i === 0 ? fold : c.text(group));
    }));
    return open ? [line, inside(index)] : [line];
  }

  function inside(index) {
    const group = data.groups[index];
    const cell = make("td", { colspan: COLUMNS.length });
    const told = [group.decisions];
    if (group.states) told.push(group.states);
    if (group.activity) told.push(group.activity);
    if (group.mm2) told.push(`MM2's checkpoints would read ${grouped(group.mm2)} more again`);
    if (group.skips) told.push(`MM2's checkpoints would skip ${grouped(group.skips)}`);
    if (group.results) told.push(`afterwards ${group.results}`);
    cell.append(make("p", {}, told.join("; ")));
    if (group.show) {
      cell.append(make("p", {}, `Its ${many(group.rows, "row")} are not in this page. To see them:`), copyable(group.show));
    } else {
      cell.append(rowTable(rowsOf(index), group.name));
    }
    return make("tr", { class: "inside" }, cell);
  }

  const ROW_COLUMNS = [
    ["Topic", "group", (r) => r.source_topic],
    ["Partition", "number", (r) => r.partition],
    ["Committed", "number", (r) => plain(r.source_committed)],
    ["Log end", "number wide", (r) => plain(r.source_log_end)],
    ["Lag", "number wide", (r) => plain(r.lag)],
    ["New offset", "number", (r) => plain(r.target_offset)],
    ["Was", "number wide", (r) => plain(r.target_prior)],
    ...(data.checkpoints ? [["MM2", "number wide", (r) => plain(r.checkpoint_target_offset)]] : []),
    ["Re-reads", "number wide", rereadsOf],
    ["Decision", "", (r) => r.decision],
    ["Grade", "wide", (r) => r.grade || "-"],
    ["Reason", "wide", (r) => r.reason],
    ...(data.after ? [["Afterwards", "", (r) => r.standing || r.status]] : []),
  ];
  const GOOD_AFTER = new Set(["set", "removed", "already", "kept", "skipped", "restored", "equal", "ahead",
    "other-metadata"]);

  function rowTable(rows, name) {
    const body = make("tbody");
    const table = make("table", {}, make("caption", { class: "unseen" }, `Rows of ${name}`),
      make("thead", {}, make("tr", {}, ...ROW_COLUMNS.map(([title, kind]) => make("th", { class: kind, scope: "col" }, title)))),
      body);
    const box = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Rows of ${name}` }, table);
    let shown = 0;
    const more = make("button", { type: "button" });
    const add = () => {
      body.append(...rows.slice(shown, shown + 2 * SHOWN).map(rowLine));
      shown += 2 * SHOWN;
      more.hidden = shown >= rows.length;
      more.textContent = `Show more rows (${grouped(Math.max(0, rows.length - shown))} left)`;
    };
    more.addEventListener("click", add);
    add();
    const holder = document.createDocumentFragment();
    holder.append(box, more);
    return holder;
  }

  function rowLine(row) {
    const fold = make("button", { type: "button", class: "fold", "aria-expanded": "false" }, row.source_topic);
    fold.addEventListener("click", () => {
      const open = fold.getAttribute("aria-expanded") !== "true";
      fold.setAttribute("aria-expanded", open);
      if (open) line.after(make("tr", { class: "evidence" }, make("td", { colspan: ROW_COLUMNS.length }, ...evidence(row))));
      else line.nextElementSibling.remove();
    });
    const wrong = data.after && !GOOD_AFTER.has(row.standing || row.status);
    const line = make("tr", { class: row.decision === "block" || row.risk || wrong ? "wrong" : null },
      ...ROW_COLUMNS.map(([, kind, text], i) => make("td", { class: kind || null }, i === 0 ? fold : String(text(row)))));
    return line;
  }

  function evidence(row) {
    const list = make("dl");
    const say = (label, text) => {
      if (text !== "" && text !== null) list.append(make("div", {}, make("dt", {}, label), make("dd", {}, String(text))));
    };
    const range = (start, end) => (start === null || end === null ? "not read" : `${start} to ${end}`);
    const link = (source, target) => (source === null || target === null ? "none" : `source ${source} at target ${target}`);
    say("Target topic", row.target_topic);
    say("Source log", range(row.source_log_start, row.source_log_end));
    say("Target log", range(row.target_log_start, row.target_log_end));
    say("Committed", plain(row.source_committed) + (row.lag === null ? "" : `, lag ${row.lag}`));
    say("New offset", plain(row.target_offset));
    say("Stood there before", row.target_prior === null ? "no offset" : row.target_prior);
    say("Re-reads", rereadsOf(row));
    say("Method", [row.method, row.grade].filter(Boolean).join(", "));
    say("Reason", row.reason);
    if (row.target_offset !== null) {
      say("Window's lower end", `${link(row.lower_source_offset, row.lower_target_offset)}${row.lower_kind ? ` (${row.lower_kind})` : ""}`);
      say("Window's upper end", link(row.upper_source_offset, row.upper_target_offset));
    }
    say("MM2's checkpoint", checkpoint(row));
    say("Compared by", row.equality);
    say("Comparing said", row.why);
    say("Missing on target", row.missing_on_target);
    say("Committed on source when planned", row.live_source_offset);
    say("Commit metadata", row.source_metadata);
    say("Metadata there", row.target_prior_metadata);
    say("Metadata to write", row.target_metadata);
    if (data.after) {
      say("Afterwards", [row.status, row.told].filter(Boolean).join(": "));
      say("Read back", row.seen);
      say("Verified", [row.standing, row.verified].filter(Boolean).join(": "));
    }
    return [make("p", {}, row.sentence), list];
  }

  function checkpoint(row) {
    if (row.checkpoint_target_offset === null) return "none";
    const told = link2(row.checkpoint_source_offset, row.checkpoint_target_offset);
    if (row.target_offset === null) return told;
    const behind = Number(row.target_offset) - Number(row.checkpoint_target_offset);
    if (!behind) return `${told}: the same offset`;
    return `${told}: ${grouped(Math.abs(behind))} ${behind > 0 ? "before" : "beyond"} this plan's`;
  }
  const link2 = (source, target) => (source === null ? `target ${target}` : `source ${source} at target ${target}`);

  // Where each group stands in the logs of one partition

  const SVG = "http://www.w3.org/2000/svg";
  function rect(kind, x, width) {
    const drawn = document.createElementNS(SVG, "rect");
    for (const [name, value] of Object.entries({ class: kind, x, width, height: "100%" })) drawn.setAttribute(name, value);
    return drawn;
  }

  function track(start, end, offset, kind, marks) {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("aria-hidden", "true");
    const length = Number(end) - Number(start);
    const share = (o) => Math.max(0, Math.min(100, length > 0 ? (100 * (Number(o) - Number(start))) / length : 100));
    svg.append(rect("track", "0%", "100%"));
    if (offset !== null && start !== null && end !== null) {
      const here = share(offset);
      svg.append(rect("read", "0%", `${here}%`), rect(kind, `${here}%`, `${100 - here}%`));
      for (const [mark, place] of marks) {
        if (place !== null) svg.append(rect(mark, `${share(place) * 0.99}%`, "4"));
      }
    }
    return svg;
  }

  function standing(topic, partition) {
    const list = make("div", { class: "logs" }, make("span", { class: "head label" }, "Group"),
      make("span", { class: "head" }, `On ${data.source}`), make("span", { class: "head" }, `On ${data.target}`));
    let drawn = 0, more = 0, unseen = 0;
    data.groups.forEach((group, index) => {
      if (!group.topics.includes(topic)) return;
      if (group.show) { unseen += 1; return; }
      const columns = read("g" + index);
      let found = -1;
      onTopic(index, columns, topic, (i) => { if (column(columns, "partition", i) === partition) found = i; });
      if (found < 0) return;
      if (drawn >= LANES) { more += 1; return; }
      const row = rowAt(columns, found);
      drawn += 1;
      const source = make("span", {}, track(row.source_log_start, row.source_log_end, row.source_committed, "lag", []),
        make("small", {}, `${plain(row.source_committed)} of ${plain(row.source_log_start)} to ${plain(row.source_log_end)}`));
      const target = make("span", {},
        track(row.target_log_start, row.target_log_end, row.target_offset, "lag",
          [["mm2", row.checkpoint_target_offset], ["prior", row.target_prior]]),
        make("small", {}, `${plain(row.target_offset)} of ${plain(row.target_log_start)} to ${plain(row.target_log_end)}`));
      list.append(make("span", { class: "label" }, group.name), source, target);
    });
    const told = [];
    if (more) told.push(`${many(more, "more group")} on this partition.`);
    if (unseen) told.push(`${many(unseen, "group")} on this topic whose rows are not in this page.`);
    byId("standing").replaceChildren(drawn ? list : make("p", {}, "No group to draw."),
      ...(told.length ? [make("p", { class: "note" }, told.join(" "))] : []));
  }

  function startLogs() {
    const topics = [...new Set(data.groups.flatMap((g) => g.topics))].sort((a, b) => (data.words[a] < data.words[b] ? -1 : 1));
    if (!topics.length) { byId("standing").append(make("p", {}, "Nothing to draw.")); return; }
    const [topic, partition] = [byId("topic"), byId("partition")];
    topic.append(...topics.map((t) => make("option", { value: t }, data.words[t])));
    const fill = () => {
      const chosen = Number(topic.value);
      const known = new Set();
      data.groups.forEach((group, index) => {
        if (group.show || !group.topics.includes(chosen)) return;
        const columns = read("g" + index);
        onTopic(index, columns, chosen, (i) => known.add(column(columns, "partition", i)));
      });
      const sorted = [...known].sort((a, b) => a - b);
      partition.replaceChildren(...sorted.map((p) => make("option", { value: p }, String(p))));
      standing(chosen, sorted.length ? sorted[0] : -1);
    };
    topic.addEventListener("change", fill);
    partition.addEventListener("change", () => standing(Number(topic.value), Number(partition.value)));
    topic.closest("p").hidden = false;
    fill();
  }

  // Copying: a file opened from disk may lack the clipboard interface; then the text is selected and copied as of old

  function copyable(text) {
    return make("div", { class: "copy" }, make("code", {}, text), make("button", { type: "button", "data-copy": "" }, "Copy"));
  }

  async function copy(button) {
    const code = button.parentElement.querySelector("code");
    let done = false;
    try {
      await navigator.clipboard.writeText(code.textContent);
      done = true;
    } catch {
      getSelection().selectAllChildren(code);
      done = document.execCommand("copy");
    }
    button.textContent = done ? "Copied" : "Selected: press Ctrl+C";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  }

  function start() {
    const [list, which] = [byId("list"), byId("which")];
    list.tHead.rows[0].append(...COLUMNS.map((c) => {
      const button = make("button", { type: "button" }, c.title);
      button.addEventListener("click", () => {
        const numbers = c.kind && c.kind.includes("number"); // the greatest first: it is what people look for
        state.down = state.key === c.key ? !state.down : Boolean(numbers);
        state.key = c.key;
        draw();
      });
      return make("th", { class: c.kind, "data-key": c.key, scope: "col" }, button);
    }));
    which.append(...KINDS.map(([kind, title, fits]) => make("option", { value: kind }, `${title} (${grouped(data.groups.filter(fits).length)})`)));
    const search = byId("search");
    const again = () => { state.query = search.value; state.which = which.value; state.shown = SHOWN; draw(); };
    search.addEventListener("input", again);
    which.addEventListener("change", again);
    byId("filters").addEventListener("submit", (event) => event.preventDefault());
    byId("more").addEventListener("click", () => { state.shown += 5 * SHOWN; draw(); });
    document.addEventListener("click", (event) => {
      if (event.target instanceof Element && event.target.matches("[data-copy]")) copy(event.target);
    });
    addEventListener("beforeprint", () => { if (state.shown < PRINTED) { state.shown = PRINTED; draw(); } });
    // report.html#group=billing: a link for the people of one group
    const linked = () => {
      const asked = new URLSearchParams(location.hash.slice(1)).get("group");
      if (asked === null) return false;
      search.value = asked;
      again();
      if (state.found.length === 1) list.tBodies[0].querySelector(".fold[aria-expanded='false']")?.click();
      byId("groups").scrollIntoView();
      return true;
    };
    addEventListener("hashchange", linked);
    byId("filters").hidden = list.hidden = false;
    if (!linked()) draw();
    // after the first paint: it reads the rows of every group on one topic
    requestAnimationFrame(() => setTimeout(startLogs));
  }

  start();
})();
