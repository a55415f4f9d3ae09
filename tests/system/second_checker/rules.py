"""Each rule of the protocol as a query whose rows are violations: when, and what happened."""

VIEWS = """
CREATE TEMP TABLE suspicion AS
    -- What the suspected process says next, up to its next grant: if it ends its old leadership, or if its first word
    -- of a belief is no seizure, or if it leads without a grant, then it was not gone.
    SELECT s.n, s.at, s.job, s.contender, ifnull((SELECT min(g.n) FROM granted g
        WHERE g.job = s.job AND g.contender = s.contender AND g.n > s.n), 1e18) AS granted_n
    FROM suspected s;
CREATE TEMP TABLE alive AS
    SELECT s.n FROM suspicion s WHERE EXISTS
        (SELECT 1 FROM revoked r WHERE r.job = s.job AND r.contender = s.contender AND r.n BETWEEN s.n AND s.granted_n
            AND r.session_id = (SELECT g.session_id FROM granted g WHERE g.job = s.job AND g.contender = s.contender
                AND g.n < s.n ORDER BY g.n DESC LIMIT 1))
    UNION SELECT s.n FROM suspicion s JOIN believed b ON b.job = s.job AND b.contender = s.contender
            AND b.n BETWEEN s.n AND s.granted_n
        WHERE b.at < (SELECT o.holds_until FROM believed o WHERE o.job = s.job AND o.contender = s.contender
                AND o.n < s.n ORDER BY o.n DESC LIMIT 1)
            AND (b.leads_until IS NOT NULL AND NOT EXISTS (SELECT 1 FROM granted g WHERE g.n = s.granted_n
                    AND NOT EXISTS (SELECT 1 FROM believed m WHERE m.job = s.job AND m.contender = s.contender
                        AND m.n > b.n AND m.n < g.n))
                OR b.holds_until IS NULL AND NOT EXISTS (SELECT 1 FROM believed f WHERE f.job = s.job
                    AND f.contender = s.contender AND f.n > s.n AND f.n < b.n));
CREATE TEMP TABLE word AS
    -- Each change of a belief, and what ends one: the next change, a right suspicion, or the process that takes it up.
    SELECT n, at, job, contender, leads_until, holds_until FROM believed
    UNION ALL SELECT n, at, job, contender, NULL, NULL FROM suspicion WHERE n NOT IN alive
    UNION ALL SELECT g.n, ifnull(b.at, g.at), g.job, f.contender, NULL, NULL
        FROM granted g
        JOIN granted f ON f.n = (SELECT max(n) FROM granted WHERE job = g.job AND session_id = g.session_id AND n < g.n)
            AND f.contender != g.contender
        LEFT JOIN believed b ON b.n = (SELECT max(n) FROM believed
            WHERE job = g.job AND contender = g.contender AND n < g.n)
        WHERE g.reason = 'adopted' AND NOT EXISTS (SELECT 1 FROM believed o
            WHERE o.job = g.job AND o.contender = f.contender AND o.at >= ifnull(b.at, g.at));
CREATE TEMP TABLE spoken AS
    SELECT n, job, contender, at, leads_until, holds_until, ifnull(lead(at) OVER own, 9e99) AS following
    FROM word WINDOW own AS (PARTITION BY job, contender ORDER BY at, leads_until IS NOT NULL, n);
CREATE TEMP TABLE believing AS
    SELECT job, contender, at AS since, min(leads_until, following) AS until, 'lead' AS what FROM spoken
        WHERE leads_until IS NOT NULL
    UNION ALL SELECT job, contender, at, min(holds_until, following), 'hold' FROM spoken WHERE holds_until IS NOT NULL;
CREATE TEMP TABLE claim AS
    SELECT s.n, s.at, s.job, s.hand, s.dir, s.to_dir, f.epoch AS was, t.epoch, t.session
    FROM stored s
    JOIN directory f ON f.job = s.job AND f.name = s.dir
    JOIN directory t ON t.job = s.job AND t.name = s.to_dir
    WHERE s.operation = 'rename' AND s.rel = '' AND s.to_rel = '';
CREATE TEMP TABLE live AS
    -- The counter's entry, or one of a completed batch, is there until its name or a folder above it goes.
    SELECT e.*, ifnull((SELECT min(g.n) FROM stored g WHERE g.job = e.job AND g.n > e.n
            AND g.operation IN ('rename', 'delete') AND g.rel = iif(s.operation = 'rename', s.to_rel, s.rel)), 1e18)
        AS gone
    FROM entry e JOIN stored s ON s.n = e.n;
UPDATE live SET gone = min(gone, ifnull((SELECT min(g.n) FROM stored g WHERE g.job = live.job AND g.n > live.n
    AND g.operation = 'delete' AND g.rel IN ('', 'checkpoints')), 1e18));
CREATE INDEX temp.live_by_query ON live (job, query, n);
CREATE TEMP TABLE told AS
    -- What readers may hear: what a leader knows to be stored, or what is stored whole below its own directory.
    SELECT job, epoch, session_id AS session, endpoints, at FROM published
    UNION SELECT e.job, e.epoch, d.session,
            iif(max(e.number) = 0, '{}', (SELECT json_group_object(name, address)
                FROM (SELECT DISTINCT i.name, i.address FROM endpoint i
                WHERE i.job = e.job AND i.dir = e.dir AND i.epoch = e.epoch AND i.version = e.version ORDER BY 1))),
            max(e.at)
        FROM endpoint e JOIN directory d ON d.job = e.job AND d.name = e.dir AND d.epoch = e.epoch
        GROUP BY e.job, e.dir, e.version HAVING count(DISTINCT e.name) = max(max(e.number), 1);
CREATE TEMP TABLE recorded AS SELECT DISTINCT job FROM stored;
"""

RULES: dict[str, tuple[str, str]] = {
    "two believers": (
        "S1",
        """
        SELECT max(x.since, y.since), printf('%s and %s both %s %s.', x.contender, y.contender, x.what, x.job)
        FROM believing x JOIN believing y ON x.job = y.job AND x.contender < y.contender AND x.what = y.what
        WHERE max(x.since, y.since) < min(x.until, y.until)""",
    ),
    "a stranger's write": (
        "S2",
        """
        SELECT s.at, printf('%s writes %s.', s.hand, s.path) FROM stored s
        JOIN directory d ON d.job = s.job AND d.name = s.dir
        WHERE s.rel NOT IN ('', 'record') AND s.hand NOT IN ('', 'operator') AND s.rel NOT LIKE 'record/lease~%'
            AND NOT EXISTS (SELECT 1 FROM granted g WHERE g.job = s.job AND g.session_id = d.session
                AND g.contender = s.hand AND g.at <= s.at)""",
    ),
    "a lease for another": (
        "S2",
        """
        SELECT l.at, printf('%s renews the lease of %s.', l.hand, l.owner) FROM lease l
        WHERE l.hand NOT IN ('', 'operator') AND l.owner != l.hand""",
    ),
    "out of an old epoch": (
        "S2",
        """
        SELECT at, printf('%s is moved to %s.', path, target) FROM stored
        WHERE operation = 'rename' AND rel != '' AND to_rel != '' AND dir != to_dir""",
    ),
    "a claim by one": (
        "S3",
        """
        SELECT c.at, printf('%s is claimed after epoch %d.', c.to_dir, c.was) FROM claim c
        WHERE c.epoch != c.was + 1 OR c.dir !=
            (SELECT e.to_dir FROM claim e WHERE e.job = c.job AND e.n < c.n ORDER BY e.n DESC LIMIT 1)""",
    ),
    "a lease grows": (
        "S3",
        """
        SELECT lease.at, printf('%s follows sequence %d of the lease.', path, was_sequence)
        FROM lease JOIN stored USING (n)
        WHERE sequence <= was_sequence""",
    ),
    "a seizure": (
        "S3",
        """
        SELECT l.at, printf('%s seizes the lease of another in mode %s.', l.owner, l.mode) FROM lease l
        WHERE l.was != '' AND l.session != l.was AND l.mode != 'hdfs'""",
    ),
    "a release": (
        "S3",
        """
        SELECT l.at, printf('%s holds what it has given back.', l.owner) FROM lease l
        WHERE l.session = l.was AND l.was_mode = 'released' AND l.mode != 'released'""",
    ),
    "epochs grow": (
        "S3",
        """
        SELECT g.at, printf('%s is granted epoch %d after epoch %d.', g.contender, g.epoch, e.epoch)
        FROM granted g JOIN granted e ON e.job = g.job AND e.n < g.n AND e.epoch >= g.epoch
        WHERE NOT (e.epoch = g.epoch AND e.session_id = g.session_id AND g.reason = 'adopted') GROUP BY g.n""",
    ),
    "a session of its own": (
        "S3",
        """
        SELECT g.at, printf('%s is granted the session of epoch %d again.', g.contender, e.epoch)
        FROM granted g JOIN granted e ON e.job = g.job AND e.n < g.n
            AND e.session_id = g.session_id AND e.epoch != g.epoch GROUP BY g.n""",
    ),
    "an id once": (
        "S4",
        """
        SELECT c.at, printf('%s gets id %d after %s got %d.', c.contender, c.id, e.contender, e.id)
        FROM counted c JOIN counted e ON e.job = c.job AND e.n != c.n
            AND (e.id = c.id AND e.n < c.n OR e.ended <= c.at AND e.id > c.id) GROUP BY c.n""",
    ),
    "what is stored grows": (
        "S4",
        """
        SELECT s.at, printf('%d of %s is gone, and nothing newer is there.', l.number, l.query)
        FROM live l JOIN stored s ON s.n = l.gone
        WHERE NOT EXISTS (SELECT 1 FROM live o WHERE o.job = l.job AND o.query = l.query
            AND o.n <= l.gone AND o.gone > l.gone AND o.number >= l.number)""",
    ),
    "an id of its own": (
        "S4",
        """
        SELECT e.at, printf('Id %d of batch %d of %s was handed out before.', e.id, e.number, e.query)
        FROM entry e WHERE e.id IN (SELECT c.id FROM counted c WHERE c.job = e.job) OR EXISTS (SELECT 1 FROM entry o
            WHERE o.job = e.job AND o.id = e.id AND o.n < e.n AND (o.query != e.query OR o.number != e.number))""",
    ),
    "a reader's ids": (
        "S4",
        """
        SELECT y.at, printf('%s hears the next id %d after %d.', y.reader, y.next_id, x.next_id)
        FROM checkpointsread x JOIN checkpointsread y ON y.job = x.job AND y.reader = x.reader AND y.n > x.n
        WHERE y.next_id < x.next_id AND x.ended <= y.at GROUP BY y.n""",
    ),
    "a reader's batches": (
        "S4",
        """
        SELECT y.at, printf('%s hears batch %d of %s after %d.', y.reader, j.batch, i.query, i.batch)
        FROM checkpointsread x JOIN checkpointsread y ON y.job = x.job AND y.reader = x.reader AND y.n > x.n
            AND x.ended <= y.at
        JOIN shown i ON i.n = x.n LEFT JOIN shown j ON j.n = y.n AND j.query = i.query
        WHERE ifnull(j.batch, -1) < i.batch GROUP BY y.n""",
    ),
    "ids are stored": (
        "S5",
        """
        SELECT c.ended, printf('Id %d was handed out and is not stored.', c.id) FROM counted c
        WHERE c.job IN recorded AND NOT EXISTS (SELECT 1 FROM entry s
            WHERE s.job = c.job AND s.query = 'next' AND s.number > c.id AND s.at <= c.ended)""",
    ),
    "batches are stored": (
        "S5",
        """
        SELECT c.ended, printf('Batch %d of %s was completed and is not stored.', c.batch, c.query) FROM completed c
        WHERE c.job IN recorded AND NOT EXISTS (SELECT 1 FROM entry s WHERE s.job = c.job AND s.query = c.query
            AND s.number >= c.batch AND s.at <= c.ended)""",
    ),
    "grants are stored": (
        "S5",
        """
        SELECT g.at, printf('Epoch %d was granted to %s and is not stored.', g.epoch, g.contender) FROM granted g
        WHERE g.job IN recorded AND NOT EXISTS (SELECT 1 FROM claim c
            WHERE c.job = g.job AND c.epoch = g.epoch AND c.session = g.session_id AND c.at <= g.at)""",
    ),
    "endpoints are stored": (
        "S5",
        """
        SELECT p.at, printf('%s published %s, and it is not stored.', p.contender, p.endpoints) FROM published p
        WHERE p.job IN recorded AND NOT EXISTS (SELECT 1 FROM told t WHERE t.job = p.job AND t.epoch = p.epoch
            AND t.session = p.session_id AND json(t.endpoints) = json(p.endpoints) AND t.at <= p.at
            AND EXISTS (SELECT 1 FROM endpoint e WHERE e.job = t.job AND e.epoch = t.epoch AND e.at = t.at))""",
    ),
    "a reader's epochs": (
        "R1",
        """
        SELECT y.at, printf('%s hears epoch %d after %d.', y.reader, y.epoch, x.epoch)
        FROM lookedup x JOIN lookedup y ON y.job = x.job AND y.reader = x.reader AND y.n > x.n AND x.ended <= y.at
        WHERE x.outcome = 'leader' AND y.outcome = 'leader' AND y.epoch < x.epoch GROUP BY y.n""",
    ),
    "one session an epoch": (
        "R1",
        """
        SELECT y.ended, printf('%s hears two sessions of epoch %d.', y.reader, y.epoch)
        FROM lookedup x JOIN lookedup y ON y.job = x.job AND y.reader = x.reader AND y.n > x.n
        WHERE x.outcome = 'leader' AND y.outcome = 'leader' AND y.epoch = x.epoch AND y.session_id != x.session_id
        GROUP BY y.n""",
    ),
    "a real grant": (
        "R2",
        """
        SELECT l.ended, printf('%s hears of epoch %d, which was never granted.', l.reader, l.epoch) FROM lookedup l
        WHERE l.outcome = 'leader' AND NOT EXISTS (SELECT 1 FROM granted g WHERE g.job = l.job
            AND g.epoch = l.epoch AND g.session_id = l.session_id AND g.at <= l.ended)""",
    ),
    "real endpoints": (
        "R2",
        """
        SELECT l.ended, printf('%s hears %s, which was never published.', l.reader, l.endpoints) FROM lookedup l
        WHERE l.outcome = 'leader' AND NOT EXISTS (SELECT 1 FROM told t WHERE t.job = l.job AND t.epoch = l.epoch
            AND t.session = l.session_id AND json(t.endpoints) = json(l.endpoints) AND t.at <= l.ended)""",
    ),
    "its deadline": (
        "R3",
        """
        SELECT l.ended, printf('A lookup of %s took %.1f s instead of %.1f.', l.reader, l.ended - l.at, l.timeout)
        FROM lookedup l WHERE l.ended - l.at > l.timeout + 0.5
            AND NOT EXISTS (SELECT 1 FROM fault f WHERE f.n < l.n)""",
    ),
    "found while all is well": (
        "R3",
        """
        SELECT l.ended, printf('%s reached no store, and nothing was wrong.', l.reader) FROM lookedup l
        WHERE l.outcome = 'unreachable' AND NOT EXISTS (SELECT 1 FROM fault f WHERE f.n < l.n)""",
    ),
    "corrected while all is well": (
        "R4",
        """
        SELECT l.ended, printf('%s still hears epoch %d.', l.reader, l.epoch) FROM lookedup l
        WHERE l.outcome = 'leader' AND NOT EXISTS (SELECT 1 FROM fault f WHERE f.n < l.n) AND EXISTS
            (SELECT 1 FROM published p WHERE p.job = l.job AND p.epoch > l.epoch AND p.at + 60 < l.at)""",
    ),
}
