-- Which drug names count as antibiotics?
--
-- The filter chooses names, not rows: one suitable prescription admits a name, and then every
-- prescription of exactly that name counts, whatever its route. Names are kept untrimmed.
-- Ceftriaxone, meropenem, imipenem, ertapenem, linezolid and daptomycin are missing from the
-- published list, and MIMIC stores generics: they never count. Kept as published.
WITH names AS (
    SELECT unnest([
        'adoxa', 'ala-tet', 'alodox', 'amikacin', 'amikin', 'amoxicillin', 'ampicillin',
        'augmentin', 'avelox', 'avidoxy', 'axetil', 'azactam', 'azithromycin', 'aztreonam',
        'bactocill', 'bactrim', 'bethkis', 'biaxin', 'bicillin l-a', 'cayston', 'cedax',
        'cefaclor', 'cefadroxil', 'cefazolin', 'cefdinir', 'cefditoren', 'cefepime', 'cefotaxime',
        'cefotetan', 'cefoxitin', 'cefpodoxime', 'cefprozil', 'ceftazidime', 'ceftibuten',
        'ceftin', 'cefuroxime', 'cephalexin', 'chloramphenicol', 'cipro', 'claforan',
        'clarithromycin', 'clavulanate', 'cleocin', 'clindamycin', 'cubicin', 'dicloxacillin',
        'doryx', 'doxycycline', 'duricef', 'dynacin', 'ery-tab', 'eryc', 'eryped', 'erythrocin',
        'erythromycin', 'factive', 'flagyl', 'fortaz', 'furadantin', 'garamycin', 'gentamicin',
        'kanamycin', 'keflex', 'ketek', 'levaquin', 'lincocin', 'macrobid', 'macrodantin',
        'maxipime', 'mefoxin', 'metronidazole', 'minocin', 'minocycline', 'monodox', 'monurol',
        'morgidox', 'moxatag', 'moxifloxacin', 'myrac', 'nafcillin sodium', 'nicazel doxy 30',
        'nitrofurantoin', 'noroxin', 'ocudox', 'ofloxacin', 'omnicef', 'oracea', 'oraxyl',
        'oxacillin', 'panixine', 'pc pen vk', 'pce dispertab', 'pediazole', 'penicillin',
        'periostat', 'pfizerpen', 'piperacillin', 'primsol', 'proquin', 'raniclor', 'rifadin',
        'rifampin', 'rocephin', 'septra', 'smz-tmp', 'solodyn', 'spectracef',
        'streptomycin sulfate', 'sulfadiazine', 'sulfamethoxazole', 'sulfatrim', 'sulfisoxazole',
        'suprax', 'synercid', 'tazicef', 'tazobactam', 'tetracycline', 'timentin', 'tobi',
        'tobramycin', 'trimethoprim', 'unasyn', 'vancocin', 'vancomycin', 'vantin', 'vibativ',
        'vibra-tabs', 'vibramycin', 'zinacef', 'zithromax', 'zmax', 'zosyn', 'zyvox'
    ]) AS name
),
candidates AS (
    SELECT DISTINCT drug
    FROM mimic.prescriptions
    WHERE drug_type IN ('MAIN', 'ADDITIVE')
      -- an unknown route drops the row, as NOT IN does on null
      AND route NOT IN ('OU', 'OS', 'OD', 'AU', 'AS', 'AD', 'TP')
      AND NOT contains(lower(route), 'ear')
      AND NOT contains(lower(route), 'eye')
      AND NOT contains(lower(drug), 'cream')
      AND NOT contains(lower(drug), 'desensitization')
      AND NOT contains(lower(drug), 'ophth oint')
      AND NOT contains(lower(drug), 'gel')
)
SELECT drug
FROM candidates
WHERE EXISTS (SELECT 1 FROM names WHERE contains(lower(candidates.drug), names.name))
ORDER BY drug
