// Draws the positions of holders outside Kafka, a line for each: as the groups are drawn, from the page's own data.
(() => {
  const { SHOWN, PRINTED, make, read, byId, data, rowAt, cell, evidence, grouped, many, plain, rereadsOf } = page;
  if (!data.holders.length) return;

  const COLUMNS = [
    ["Holder", "group", (r) => r.holder],
    ["Topic", "group", (r) => r.source_topic],
    ["Partition", "number", (r) => r.partition],
    ["Wanted next", "number wide", (r) => plain(r.source_committed)],
    ["New offset", "number", (r) => plain(r.target_offset)],
    ["Re-reads", "number wide", rereadsOf],
    ["Decision", "", (r) => r.decision],
    ["Grade", "wide", (r) => r.grade || "-"],
    ["Reason", "wide", (r) => r.reason],
  ];
  const KINDS = [
    ["all", "all positions", () => true],
    ["manual", "for you to set", (of) => of("decision") === "manual"],
    ["block", "blocked", (of) => of("decision") === "block"],
    ["twice", "may read records twice", (of) => of("rereads_at_most") !== 0 && of("target_offset") !== null],
  ];
  // Of a position that is not shown, no more is decoded than what is asked of it
  const rows = data.holders.flatMap((holder, index) => {
    if (!holder.embedded) return [];
    const columns = read("h" + index);
    return Array.from({ length: holder.rows }, (_, i) => ({ holder, of: (field) => cell(columns, field, i),
      whole: () => ({ ...rowAt(columns, i), holder: holder.name }) }));
  });
  const searched = rows.map(({ holder, of }) =>
    [holder.name, of("source_topic"), of("target_topic")].join("\n").toLowerCase());
  const open = new Set();
  let shown = SHOWN;

  function draw() {
    const query = byId("held-search").value.trim().toLowerCase();
    const [, , fits] = KINDS.find(([kind]) => kind === byId("held-which").value);
    const found = rows.map((_, i) => i).filter((i) => searched[i].includes(query) && fits(rows[i].of));
    const holders = new Set(found.map((i) => rows[i].holder)).size;
    byId("held-found").textContent = `${many(found.length, "position")} of ${grouped(rows.length)}, ${many(holders, "holder")}`;
    byId("held").tBodies[0].replaceChildren(...found.slice(0, shown).flatMap(lines));
    const left = found.length - shown;
    byId("held-more").hidden = left <= 0;
    byId("held-more").textContent = `Show ${grouped(Math.min(left, 5 * SHOWN))} more of ${grouped(left)}`;
  }

  function lines(index) {
    const row = rows[index].whole();
    const fold = make("button", { type: "button", class: "fold", "aria-expanded": open.has(index) }, row.holder);
    const inside = () => make("tr", { class: "evidence" }, make("td", { colspan: COLUMNS.length }, ...evidence(row, true)));
    fold.addEventListener("click", () => {
      if (!open.delete(index)) open.add(index);
      fold.setAttribute("aria-expanded", open.has(index));
      if (open.has(index)) line.after(inside());
      else line.nextElementSibling.remove();
    });
    const line = make("tr", { "data-position": index, class: row.decision === "block" || row.risk ? "wrong" : null },
      ...COLUMNS.map(([, kind, text], i) => make("td", { class: kind || null }, i === 0 ? fold : String(text(row)))));
    return open.has(index) ? [line, inside()] : [line];
  }

  byId("held").tHead.rows[0].append(...COLUMNS.map(([title, kind]) => make("th", { class: kind || null, scope: "col" }, title)));
  byId("held-which").append(...KINDS.map(([kind, title, fits]) =>
    make("option", { value: kind }, `${title} (${grouped(rows.filter(({ of }) => fits(of)).length)})`)));
  const again = () => { shown = SHOWN; draw(); };
  byId("held-search").addEventListener("input", again);
  byId("held-which").addEventListener("change", again);
  byId("held-filters").addEventListener("submit", (event) => event.preventDefault());
  byId("held-more").addEventListener("click", () => { shown += 5 * SHOWN; draw(); });
  addEventListener("beforeprint", () => { if (shown < PRINTED) { shown = PRINTED; draw(); } });
  byId("held-filters").hidden = byId("held").hidden = false;
  draw();
})();
