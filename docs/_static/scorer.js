/* How the site's search ranks: as Sphinx does, but decisions come last. */
var Scorer = {
  score: (result) => {
    const [docname, , , , score] = result;
    return docname.startsWith("decisions/") ? score - 1000 : score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
