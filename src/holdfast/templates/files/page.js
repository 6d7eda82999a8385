"use strict";
// A click on a column sorts its table; a second one turns it round. Empty cells stay at the end.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const rising = head.getAttribute("aria-sort") !== "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", rising ? "ascending" : "descending");
    const value = (row) => row.cells[column].dataset.sort;
    const order = (a, b) => {
      const x = value(a), y = value(b);
      if (x === "" || y === "") return (x === "") - (y === "");
      const p = Number(x), q = Number(y);
      const by = Number.isNaN(p) || Number.isNaN(q) ? x.localeCompare(y, undefined, { numeric: true }) : p - q;
      return rising ? by : -by;
    };
    table.tBodies[0].append(...[...table.tBodies[0].rows].sort(order));
  }));
}
// On paper everything is open.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
