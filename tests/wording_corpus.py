"""Labelled lines for the wording rules, invented: predicates of four languages times frames. Out: (line, wanted) pairs.

Wanted is whether the line touches what GDPR Art. 9 protects (`protected`) or tells of somebody else (`people`).
"""

from __future__ import annotations

from collections.abc import Iterator

PROTECTED_EN = """
is allergic to peanuts|has a severe shellfish allergy|carries an EpiPen|is lactose intolerant
has coeliac disease|takes insulin for diabetes|lives with type 1 diabetes|was diagnosed with breast cancer
is going through chemotherapy|has asthma|uses an inhaler|has epilepsy|gets migraines|has rheumatoid arthritis
takes blood pressure tablets|has high cholesterol|has a pacemaker|recovering from a stroke|is on antidepressants
struggles with anxiety|has ADHD|is autistic|lives with PTSD|has Crohn's disease|suffers from acid reflux
has eczema|has psoriasis|is HIV positive|takes warfarin|needs a gluten-free diet because of celiac disease
uses a wheelchair|is deaf in one ear|is legally blind|is colour-blind|wears hearing aids|walks with crutches
has limited mobility|has a bad knee|has chronic back pain|had hip surgery last month|is pregnant
is expecting twins|is breastfeeding|went through IVF|is in menopause|has sleep apnea|has an underactive thyroid
is anaemic|has a prosthetic leg|sees a therapist every week|is in rehab|is a recovering alcoholic
takes 20 mg of medication daily|is on a statin|has dyslexia|has gout|has kidney disease|is immunocompromised
is diabetic|takes metformin|has a stoma|has lupus|has Hashimoto's disease
cannot stand for long because of an injury|is Muslim and eats only halal meat|keeps kosher
is a practising Catholic|goes to church on Sundays|prays five times a day|observes Ramadan|is Jewish
is a Buddhist|is an atheist|fasts during Lent|is Hindu|is a Sikh|is African American|is of Turkish descent
has Kurdish roots|is Hispanic|is Latina|belongs to the Roma community|is of mixed race|is gay|is a lesbian
is bisexual|is transgender|is non-binary|is in a same-sex marriage|votes Labour|is a Republican
is a member of the Green party|is a climate activist|is politically left-wing|campaigns for the Liberals
is a union member|is a shop steward|belongs to a trade union|joined the teachers' union
signs in with a fingerprint|agreed to face recognition|gave her DNA to a genetic test|enrolled his iris scan
stored a voiceprint
"""
INNOCENT_EN = """
likes black coffee|wears Christian Dior perfume|wants new window blinds|prefers nut-brown shoes
likes kidney beans|wants a heart-shaped box|likes union jack mugs|prefers a smudge-proof fridge
likes conservative suits|needs a phone case|prefers morning deliveries|wears size 42|likes rock music
wants the green one|collects stamps|is vegan|eats no meat|likes spicy food|avoids wool|prefers organic cotton
drinks oat milk|hates cilantro|works from home|has two dogs|moved to Leeds|prefers paper invoices
pays by invoice|likes minimal packaging|wants a quiet hotel room|needs a desk of 120 cm|prefers window seats
is a left-handed guitarist|rides a bike to work|likes Asian food|likes Latin music|likes Mexican dishes
speaks Polish|comes from Spain|is a nurse|is a doctor by trade|works in a hospital kitchen supply firm
runs marathons|does yoga on Mondays|likes hot showers|prefers fragrance-free soap|wants refurbished laptops
is on a tight budget|prefers blue|likes long walks|wants no small talk|has a red car|likes crime novels
prefers a straight razor|collects trans-European railway posters|wants a party dress|likes a party speaker
voted our shop favourite|needs an operating manual|prefers soft mattresses|likes dark chocolate
buys gifts in December|celebrates Christmas|is a student|has a gym membership|wants a walking tour
likes temple runs as a game
"""
PROTECTED_DE = """
ist allergisch gegen Nüsse|hat eine Laktoseintoleranz|hat Zöliakie|ist Diabetikerin|spritzt Insulin|hat Asthma
hat Bluthochdruck|hat Migräne|hatte einen Schlaganfall|leidet an Depressionen|hat eine Angststörung|hat Rheuma
hat Neurodermitis|hat eine Schilddrüsenerkrankung|nimmt Blutverdünner|nimmt täglich Medikamente|ist schwanger
stillt noch|sitzt im Rollstuhl|ist schwerbehindert|ist gehörlos|trägt ein Hörgerät|ist fast blind
hatte einen Bandscheibenvorfall|wurde am Knie operiert|hat Brustkrebs|ist in Therapie
hat chronische Rückenschmerzen|verträgt keine Milch|ist Muslim|isst nur halal|lebt koscher|ist katholisch
ist evangelisch|geht sonntags in die Kirche|betet täglich|ist Jüdin|ist gläubiger Christ und religiös|ist schwul
ist lesbisch|ist bisexuell|lebt als Transfrau|ist Mitglied der SPD|wählt die Grünen|ist politisch links
ist Kommunist|ist in der Gewerkschaft|ist im Betriebsrat|zahlt Beiträge an ver.di
meldet sich mit Fingerabdruck an|hat der Gesichtserkennung zugestimmt|machte einen Gentest|hat kurdische Wurzeln
ist türkischer Herkunft|hat Migrationshintergrund|hat Heuschnupfen|hat Gicht|hat Epilepsie|ist alkoholkrank
braucht einen Rollator
"""
INNOCENT_DE = """
mag schwarzen Kaffee|trägt Größe 42|will keine Plastiktüten|bevorzugt Lieferung am Abend|isst vegan
mag scharfes Essen|wohnt in Köln|hat zwei Hunde|sucht einen leisen Staubsauger|mag Jazz|zahlt per Rechnung
trinkt Hafermilch|fährt Rad|arbeitet nachts|mag blaue Hemden|hasst Koriander|sammelt Münzen
bevorzugt Fensterplätze|möchte keine Anrufe|liest gern Krimis|mag asiatische Küche|spricht Polnisch
ist Krankenpfleger von Beruf|sucht ein Partykleid|will weiche Matratzen|mag Bitterschokolade
kauft gern gebraucht|braucht Pakete an die Packstation|mag Kirschkuchen|mag Kreuzworträtsel
mag Blindverkostungen
"""
PROTECTED_ES = """
es alérgica a los frutos secos|tiene alergia al marisco|es intolerante a la lactosa|es celíaco|tiene diabetes
usa insulina|tiene asma|es hipertenso|tiene la tensión alta|sufre migrañas|tiene artritis|tuvo un infarto
está en tratamiento por depresión|tiene ansiedad|es autista|tiene dermatitis|toma medicamentos para el corazón
toma antidepresivos|está embarazada|va en silla de ruedas|tiene una discapacidad|es sordo|es ciega|es daltónico
le operaron de la rodilla|tiene cáncer|tiene dolor de espalda|ve a una psicóloga|tiene una enfermedad crónica
es musulmana|come solo halal|es católico|va a la iglesia los domingos|es judía|reza cada día|es atea|es gay
es lesbiana|es bisexual|es una mujer trans|vota al PSOE|es de izquierdas|es militante del partido socialista
está en un sindicato|es delegada sindical|usa la huella dactilar|aceptó el reconocimiento facial|es gitana
es de origen marroquí|tiene hipotiroidismo|está en silla de ruedas desde 2020|tiene epilepsia
toma pastillas para la presión arterial
"""
INNOCENT_ES = """
le gusta el café solo|usa la talla 42|prefiere entregas por la tarde|es vegana|vive en Sevilla|tiene dos perros
odia el cilantro|bebe leche de avena|colecciona monedas|lee novelas negras|prefiere asiento de ventanilla
paga con factura|le gusta el jazz|trabaja de noche|quiere una lámpara verde|le gusta lo picante|habla polaco
busca un vestido de fiesta|prefiere colchones blandos|monta en bicicleta|no quiere llamadas
compra de segunda mano|le gusta la comida mexicana|es enfermera de profesión
"""
PROTECTED_ZH = """
对花生过敏|對海鮮過敏|乳糖不耐受|有糖尿病|每天打胰岛素|有高血壓|患有哮喘|有偏头痛|有关节炎|得过癌症|正在化疗
有抑郁症|患有焦慮症|在看心理医生|吃抗抑郁药|有湿疹|怀孕六个月|懷孕了|还在哺乳|坐轮椅|是聽障人士|是色盲|戴助听器
腰椎间盘突出|膝盖不好不能爬楼|做过心脏手术|有痛风|甲状腺有问题|贫血|失眠吃安眠药|是穆斯林|只吃清真食品|信佛吃斋
是基督徒|每周去教堂|是天主教徒|是回族|是原住民|是维吾尔族|是同性恋|是跨性別者|是共产党员|投票給民進黨|是工会会员
參加了工會|用指纹登录|同意人脸识别|做过基因检测
"""
INNOCENT_ZH = """
喜欢喝黑咖啡|穿四十二码|不吃香菜|喜歡吃辣|住在台北|养了两只狗|喜欢蓝色|只要纸质发票|喜欢靠窗的座位|不要打电话
晚上送货|喜歡爵士樂|喝燕麦奶|收集邮票|爱看侦探小说|骑车上班|预算五百元|喜欢软床垫|要小包装|用安卓手机
喜欢日本料理|不喜歡羊毛|买二手书|周末在家|想要安静的房间|喜欢简约风格|每月买咖啡豆|穿宽松衣服
"""
# Drawn after the rules were written, as a check on the tables above; what they first missed is in the rules now.
PROTECTED_DRAWN_LATER = """
takes levothyroxine every morning|is on Zoloft|has stage 4 lymphoma|needs step-free access|is hard-of-hearing
uses a cane to walk|is in remission|started Ozempic|has vitiligo|carries the sickle cell trait
had a kidney removed|is on the pill|nursing a newborn|walks with a limp|keeps the Sabbath|is a Quaker
wears a hijab|attends Friday prayers|is a Jehovah's Witness|is Orthodox|was baptised last year|is Romani
has African roots|is Kurdish|is married to another man, openly gay|he is trans|came out as bi last year
supports the SNP|is a Labour councillor|went to a Fridays for Future protest|is a Tory voter
pays union dues to Unison|is a Teamster|uses Face ID data for login|submitted a retina scan|has a nut allergy
can't digest lactose|bee stings could kill her, carries adrenaline|has a peanut anaphylaxis plan
needs sugar-free food for medical reasons|swollen ankles|has trouble hearing|wears a glucose monitor
recently had a heart bypass|wears compression stockings for varicose veins|has a titanium hip
gets panic attacks in lifts|is claustrophobic|has a fear of flying treated by a therapist|has an IUD
is trying to conceive|had a caesarean|is on HRT|nimmt die Pille|hat einen Herzschrittmacher
ist Rollstuhlfahrerin|leidet unter Tinnitus|hat MS|hat eine künstliche Hüfte|kann schlecht hören
ist insulinpflichtig|ist trocken seit zwei Jahren|fastet im Ramadan|ist Zeugin Jehovas
ist aus der Kirche ausgetreten|ist Sinti|wählt FDP|ist CDU-Mitglied|ist bei der IG Metall|hat ADHS
hat eine Sehschwäche|ist Bluter|tiene la enfermedad de Crohn|es celiaca|toma la píldora|tiene marcapasos
es invidente|tiene TDAH|está en diálisis|ayuna en ramadán|es testigo de Jehová|es afiliada a UGT|vota a Podemos
es trans|no tolera el gluten|no puede comer gluten|肾不好|有三高|做透析|有心脏病|装了心脏起搏器|在服用降压药
对乳制品过敏|是藏族人|吃素拜佛|是党员|出柜了|有抽动症|有帕金森|視力不好|聽力受損|腿脚不便|在坐月子|吃避孕药
has a latex allergy|gets hives from strawberries|carries antihistamines|is on dialysis twice a week
had a stent put in|has a cochlear implant|needs a ramp for her mobility scooter|has carpal tunnel
has multiple sclerosis|recovering from knee replacement|has a weak heart|takes pills for high blood pressure
was hospitalised in May|suffers from long covid|has postpartum depression|is six months pregnant
has polycystic ovaries|needs low-sodium meals because of kidneys|is visually impaired|sees a psychiatrist
is a wheelchair user|is a cancer survivor|has PCOS|has food poisoning often|is sober for 3 years
attends the local mosque|is a Seventh-day Adventist|eats pork-free for religious reasons|wears a kippah
is Punjabi Sikh|is half Japanese by descent|is Afro-Caribbean|is gay and lives with his boyfriend
has two mums as parents|transitioned last year|is a card-carrying socialist|canvasses for the Democrats
volunteers for the Republican campaign|is a works council member|is in the nurses' union
unlocks with fingerprint|has Huntington gene|hat eine Pollenallergie|hat Laktoseprobleme
ist im sechsten Monat schwanger|hat Parkinson|braucht Gehhilfen|hat Herzrhythmusstörungen
ist Veganer aus religiösen Gründen|gehört zur jüdischen Gemeinde|ist queer|engagiert sich bei den Grünen
ist Betriebsrätin|leidet an Migräne|tiene intolerancia al gluten|padece fibromialgia|usa bastón
está de baja por ansiedad|tiene vértigo|es hindú|es homosexual|apoya a Vox|es delegado de CCOO|对乳胶过敏
有慢性胃炎|刚做完膝盖手术|是视障人士|怀孕五个月|有抑郁倾向|信伊斯兰教|是满族|支持民进党|是同志|有高血脂|正在服药
对芒果过敏|有哮喘病史|是聋哑人|在做试管婴儿|is allergic to bee stings|has a milk allergy|has type 2 diabetes
takes heart medication|has sciatica|is lactose-intolerant|has tendinitis|is bipolar|is in a wheelchair
is partially sighted|had a hysterectomy|uses a nebuliser|has narcolepsy|has scoliosis|is epileptic
has a learning disability|has a speech impediment|stutters|wears orthopaedic shoes|has diabetic feet
has flat feet|is recovering from an eating disorder|is going through menopause|is on maternity leave
has a high-risk pregnancy|needs insulin kept cold|has an autoimmune disease|is a Muslim|is Jewish
doesn't eat beef because he is Hindu|is a Christian|is a devout Catholic|is a member of the LDS church
comes from a Kurdish family|is ethnically Chinese|has Native American ancestry|is lesbian|is asexual
is a trans man|supports the Greens|is a Conservative voter|is a union rep|has left-wing views
uses facial recognition to log in|hat eine Erdnussallergie|ist Diabetiker|nimmt Blutdruckmittel|hat Asthma
ist hörgeschädigt|hat Knieprobleme|ist Muslimin|ist Atheist|ist homosexuell|ist Gewerkschaftsmitglied
es alérgico al látex|tiene problemas de rodilla|es hipotensa|está en tratamiento de fertilidad|es protestante
es bisexual|es sindicalista|vota a la izquierda|对猫毛过敏|有高血压|腰不好|怀了双胞胎|是佛教徒|是蒙古族|是双性恋
加入了工会|支持国民党|有糖尿病不能吃甜的|对青霉素过敏|有哮喘|听力不太好|做过化疗
"""
FRAMES = {
    "en": ("The customer {}.", "{}", "Note: {}, please remember."),
    "de": ("Die Kundin {}.", "{}"),
    "es": ("La clienta {}.", "{}"),
    "zh": ("我{}。", "{}", "客户{}"),
}
PROTECTED = {"en": PROTECTED_EN, "de": PROTECTED_DE, "es": PROTECTED_ES, "zh": PROTECTED_ZH}
UNPROTECTED = {"en": INNOCENT_EN, "de": INNOCENT_DE, "es": INNOCENT_ES, "zh": INNOCENT_ZH}

OTHERS = {
    "en": (
        "my {0} is allergic to nuts|my {0} wears size 38|buys books for her {0}|his {0} hates cilantro"
"|our youngest {0} likes trains|my {0}'s birthday is in May|a gift for my {0}",
        "daughter|son|wife|husband|mother|dad|brother|sister|grandmother|nephew|aunt|cousin|best friend|neighbour"
"|boss|colleague|mother-in-law|roommate|girlfriend|stepson",
    ),
    "de": (
        "meine {0} ist allergisch|ihre {0} trägt Größe 38|kauft Bücher für ihre {0}|unsere {0} mag Züge",
        "Tochter|Frau|Mutter|Schwester|Oma|Nichte|Tante|Freundin|Nachbarin|Chefin|Kollegin|Schwiegermutter"
"|Mitbewohnerin|Partnerin",
    ),
    "es": (
        "mi {0} es celíaca|su {0} usa la talla 38|compra libros para su {0}|nuestra {0} odia el cilantro",
        "hija|esposa|madre|hermana|abuela|sobrina|tía|prima|amiga|vecina|jefa|suegra|novia|compañera de piso",
    ),
    "zh": (
        "我{0}对花生过敏|我的{0}穿三十八码|给{0}买书|我{0}不喜歡香菜",
        "女儿|儿子|老婆|老公|妈妈|爸爸|哥哥|妹妹|奶奶|外婆|朋友|同事|男朋友|兒子|室友",
    ),
}  # fmt: skip
MORE_OTHERS = """
daughter is allergic to penicillin|Wife prefers tea|has two children aged 4 and 6|has a son who plays chess
a friend of mine is vegetarian|she is lactose intolerant|Older brother lives in Rome
the baby needs soft blankets|the kids don't eat fish|her partner's mother is Danish|Sohn ist sechs Jahre alt
hat zwei Kinder|Mann isst kein Fleisch|el bebé tiene alergia|tiene dos hijos|las niñas no comen pescado
女儿今年六岁|有两个孩子
"""


def lines(text: str) -> list[str]:
    return [line for line in text.strip().replace("\n", "|").split("|") if line]


def protected() -> Iterator[tuple[str, bool]]:
    for table, wanted in ((PROTECTED, True), (UNPROTECTED, False)):
        for language, text in table.items():
            for frame in FRAMES[language]:
                yield from ((frame.format(line), wanted) for line in lines(text))
    yield from ((line, True) for line in lines(PROTECTED_DRAWN_LATER))


def people() -> Iterator[tuple[str, bool]]:
    for frames, kin in OTHERS.values():
        yield from ((frame.format(who), True) for frame in frames.split("|") for who in kin.split("|"))
    yield from ((line, True) for line in lines(MORE_OTHERS))
    for language, text in UNPROTECTED.items():
        yield from ((frame.format(line), False) for frame in FRAMES[language] for line in lines(text))
