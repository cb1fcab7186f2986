"""x"""
def about_other_person(t: str) -> bool: return False
def instruction_shaped(t: str) -> bool: return False
def sensitive(t: str) -> bool: return False
