// What runs when the page is opened.

const afterwards = []; // what waits until the page stands

const documents = JSON.parse(document.getElementById("documents").textContent);
if (documents.page === "edit") showEdit(documents);
else showComparison(documents);
for (const act of afterwards) act();

// on paper everything is open
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((each) => (each.open = true)));
