// Sorts a table by the column whose heading is pressed. Without this script tables are as written.
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  if (body.rows.length < 2) continue;
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const falling = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", falling ? "descending" : "ascending");
      const rows = [...body.rows].map((row) => {
        const text = row.cells[column].textContent.trim();
        return { row, text, number: parseFloat(text.replace(/^[^\d.-]+/, "")) };
      });
      const filled = rows.filter((it) => it.text !== "-" && it.text !== "");
      const numeric = filled.every((it) => !Number.isNaN(it.number) && /^[-.\d]/.test(it.text));
      filled.sort((a, b) => {
        const order = numeric ? a.number - b.number : a.text.localeCompare(b.text);
        return falling ? -order : order;
      });
      const empty = rows.filter((it) => !filled.includes(it)); // always last
      body.append(...[...filled, ...empty].map((it) => it.row));
    });
  });
}
